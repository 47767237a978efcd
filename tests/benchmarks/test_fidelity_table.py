"""The benchmark with and without cheap runs: its landscapes, and what it prints."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.stats.cheap_runs import rank_correlation
from benchmarks.search import fidelity_table
from benchmarks.search.families import landscape
from benchmarks.search.fidelity_table import REDRAWN, Plan, cheap_form, play
from benchmarks.search.landscapes import Land

PLAN = Plan(runs=30, full_s=10.0, share=0.1)


def singles(land: Land) -> list[Setting]:
    return [Setting({p.name: c}) for p in land.space for c in p.choices if c is not None]


@pytest.mark.parametrize(("form", "low", "high"), [("agrees", 1, 1), ("disagrees", -0.6, 0.5)])
def test_forms_agree_as_they_are_called(form: str, low: float, high: float) -> None:
    land = landscape("harsh", 1)
    cheap = cheap_form(land, REDRAWN[form], 1, 0.1)
    settings = singles(land)
    seen = rank_correlation([*map(cheap.truth, settings)], [*map(land.truth, settings)])
    assert low <= round(seen, 9) <= high
    assert cheap.truth(DEFAULT) == 1
    assert cheap.default_s == pytest.approx(0.1 * land.default_s)


def test_half_of_the_parameters_are_drawn_anew() -> None:
    land = landscape("benign", 2)
    cheap = cheap_form(land, REDRAWN["half"], 2, 0.1)
    settings = singles(land)
    same = {
        name
        for name in (p.name for p in land.space)
        if all(cheap.truth(s) == land.truth(s) for s in settings if name in s)
    }
    assert len(same) == pytest.approx(len(land.space) / 2, abs=1)


def test_cheap_runs_scatter_more_and_fail_where_their_truth_does() -> None:
    land = landscape("benign", 0)
    cheap = cheap_form(land, 0.0, 0, 0.1)
    setting = next(s for s in singles(land) if math.isfinite(land.truth(s)))

    def spread(one: Land) -> float:
        rng = np.random.default_rng(0)
        logs = [math.log(one.draw(setting, rng)[0]) for _ in range(400)]
        low, high = np.quantile(logs, [0.25, 0.75])
        return float(high - low)

    assert spread(cheap) == pytest.approx(1.5 * spread(land), rel=0.1)


def test_a_search_counts_its_cheap_runs_by_their_time() -> None:
    without = play(("random", "harsh", 0, 0, fidelity_table.WITHOUT, PLAN))
    with_cheap = play(("random", "harsh", 0, 0, "agrees", PLAN))
    assert (without.screened, without.switched_off) == (0, False)
    assert with_cheap.screened > 0
    assert -1 <= with_cheap.share <= 1
    assert play(("random", "harsh", 0, 0, "disagrees", PLAN)).switched_off


def test_the_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    words = ["--family", "benign", "--strategy", "random", "--landscapes", "1", "--seeds", "1"]
    words += ["--runs", "14", "--json"]
    assert fidelity_table.main([*words, str(out)]) == 0
    table = capsys.readouterr().out
    rows = json.loads(out.read_text())["rows"]["benign"]
    assert [row["form"] for row in rows] == ["without", *REDRAWN]
    assert all(form in table for form in REDRAWN)
    for wrong in (["--strategy", "nobody"], ["--share", "2"]):
        with pytest.raises(UsageError):
            fidelity_table.main(wrong)
