"""The choice over a class of programs, and what is stored of it."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from autotune.anova.classwide import BEST_SINGLE, choose
from autotune.anova.classwide_result import (
    RESULTS,
    ClasswideResult,
    ProgramEvidence,
)
from autotune.anova.factors import FactorOptions
from autotune.anova.table import CellFacts, RunTable
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from benchmarks.harness.synthetic_tables import (
    Effect,
    cell_facts,
    no_effect,
    random_settings,
    table_of,
)
from tests.anova.conftest import TRUTH, choices
from tests.refusals import refused

CELLS = cell_facts(["a", "b", "c", "d"], ["S"], [4])


@cache
def table(effect: Effect, seed: int = 0, programs: int = 3) -> RunTable:
    rng = np.random.default_rng(seed)
    return table_of(random_settings(choices(), 90, rng), CELLS[-programs:], effect, rng)


def test_a_common_optimum_is_chosen_and_reaches_the_best_single_setting() -> None:
    found = choose(table(TRUTH), FactorOptions())
    assert found.setting["eager"] == 4
    assert found.setting["links"] == 2
    assert found.by_effect[-1] == "eager"
    assert sorted(found.by_effect) == list(found.setting)
    shares = {row.name: row.share for row in found.rows}
    assert shares[found.method] >= 0.95 * shares[BEST_SINGLE]
    assert shares["rand"] < 0.5 < shares["best"]
    assert shares["default"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_where_nothing_matters_the_default_is_named(seed: int) -> None:
    found = choose(table(no_effect, seed), FactorOptions(), seed)
    assert found.method == "default"
    assert found.setting == DEFAULT


def test_a_setting_that_slows_one_program_is_not_chosen() -> None:
    def split(setting: Setting, place: CellFacts) -> float:
        hurt = 0.35 if place.app == "d" and setting.get("eager") == 4 else 0.0
        return TRUTH(setting, place) + hurt

    found = choose(table(split, programs=4), FactorOptions())
    direct = next(row for row in found.rows if row.name == "direct")
    assert direct.setting is not None
    assert direct.setting.get("eager") != 4
    hindsight = next(row for row in found.rows if row.name == BEST_SINGLE)
    assert hindsight.setting is not None
    assert hindsight.setting["eager"] == 4
    assert hindsight.slower > 0
    assert found.setting.get("eager") != 4


def test_one_program_alone_is_warned_of() -> None:
    alone = table(TRUTH).where(lambda place: place.app == "d")
    found = choose(alone, FactorOptions())
    assert any(note.code == "classwide.one_program" for note in found.warnings)
    assert all(row.held_out is None for row in found.rows)


def test_no_common_settings_is_said() -> None:
    both = table(TRUTH)
    only_b = both.rows["cell"].str.startswith("b") & (both.rows["key"] != "default")
    only_d = both.rows["cell"].str.startswith("d") & (both.rows["key"] == "default")
    kept = (only_b | only_d).to_numpy()
    broken = dataclasses.replace(
        both.where(lambda place: place.app in "bd"),
        rows=both.rows[kept].reset_index(drop=True),
        factors=both.factors[kept],
    )
    with refused(UsageError, "classwide.no_common_setting"):
        choose(broken, FactorOptions())


EVIDENCE = ProgramEvidence(
    "a", "S", 4, "local", False, 0.1, 0.05, float("inf"), 12, "better", "10 % faster", "abc"
)


def result(**changes: object) -> ClasswideResult:
    plain: dict[str, object] = {
        "status": "recommended",
        "setting": Setting({"eager": 4, "map": "a,b"}),
        "cluster": "local",
        "machine": "f00d",
        "mpi": {"name": "openmpi", "version": "5.0.8"},
        "space": "openmpi",
        "date": "2026-01-02T00:00:00+00:00",
        "method": "direct",
        "source": "dataset three",
        "gain": 0.1,
        "evidence": (EVIDENCE,),
        "pruned": ("depth",),
        "margin": 0.02,
        "held_out_shows": "no loss",
        "not_pruned": ("links",),
    }
    return ClasswideResult(**{**plain, **changes})  # type: ignore[arg-type]


def test_a_stored_result_comes_back_and_is_found_by_its_id(tmp_path: Path) -> None:
    one = result()
    path = RESULTS.save(one, tmp_path)
    back = RESULTS.find(one.id[:6], tmp_path)
    assert back.id == one.id
    assert back.setting == one.setting
    assert back.evidence[0].hi is None
    assert back.proven
    assert back == dataclasses.replace(one, evidence=back.evidence)
    assert RESULTS.read(path).id == one.id


def test_a_recommendation_that_showed_no_margin_is_refused(tmp_path: Path) -> None:
    path = RESULTS.save(result(margin=None), tmp_path)
    with pytest.raises(UsageError) as caught:
        RESULTS.read(path)
    assert caught.value.code == "artifact.damaged"


def test_the_latest_proven_result_of_a_cluster(tmp_path: Path) -> None:
    RESULTS.save(result(), tmp_path)
    newer = result(date="2026-02-01T00:00:00+00:00")
    RESULTS.save(newer, tmp_path)
    RESULTS.save(result(date="2026-03-01T00:00:00+00:00", status="unproven"), tmp_path)
    found = RESULTS.latest("local", tmp_path, lambda found: found.proven)
    assert found is not None
    assert found.id == newer.id
    assert RESULTS.latest("elsewhere", tmp_path) is None


def test_a_result_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    path = RESULTS.save(result(), tmp_path)
    (tmp_path / "0000.json").write_text('{"schema"')
    (tmp_path / "ffff.json").write_text(path.read_text().replace(result().id, "f" * 12))
    notes: list[Note] = []
    found = RESULTS.latest("local", tmp_path, say=notes.append)
    assert found is not None
    assert found.id == result().id
    assert [note.data["code"] for note in notes] == ["artifact.unreadable", "artifact.edited"]
    assert [note.data["file"] for note in notes] == [
        str(tmp_path / "0000.json"),
        str(tmp_path / "ffff.json"),
    ]


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda d: d.update(schema="autotune-classwide-9"), "artifact.version", "classwide-9"),
        (lambda d: d.pop("evidence"), "artifact.damaged", "evidence"),
        (lambda d: d.update(more=1), "artifact.damaged", "more"),
        (lambda d: d["setting"].update(eager=8), "artifact.edited", ""),
        (lambda d: d.update(status="great"), "artifact.damaged", "status"),
        (lambda d: d.update(held_out_shows="luck"), "artifact.damaged", "held_out_shows"),
        (lambda d: d.update(margin=None), "artifact.damaged", ""),
    ],
)
def test_a_result_that_was_meddled_with_is_refused(  # type: ignore[no-untyped-def]
    tmp_path: Path, change, code: str, named: str
) -> None:
    path = RESULTS.save(result(), tmp_path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with refused(UsageError, code) as caught:
        RESULTS.read(path)
    assert named in str(caught.value)


def test_ids_that_fit_nothing(tmp_path: Path) -> None:
    with refused(UsageError, "artifact.unknown"):
        RESULTS.find("abcd", tmp_path)
    with refused(UsageError, "artifact.id_syntax"):
        RESULTS.find("../../etc", tmp_path)
