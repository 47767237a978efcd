"""Tables from a study in the database and from a recorded dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.anova.classwide import Choice
from autotune.anova.table import dataset_table, read_table, study_table
from autotune.api.classwide import class_of, in_names_here
from autotune.datasets import load
from autotune.errors import UsageError
from autotune.space import Setting, load_space
from autotune.space.commutativity import commutative_values
from autotune.store import Store
from benchmarks.classwide_simulation import program
from runner.types import RunRecord
from tests.contract.store_samples import key, ok
from tests.refusals import refused
from tests.space.libraries import OLD

FAST, BROKEN = Setting({"eager": 4}), Setting({"eager": 1})


def test_a_study_is_one_cell_of_ratios_to_the_default_around(work: Path) -> None:
    with Store.open(work / "r.db") as store:
        study = store.study(key())
        made = [
            ("default", ok(9.0)),
            ("default", ok(2.0)),
            (FAST.key, ok(1.0)),
            (BROKEN.key, RunRecord("failed", reason="exit code 1")),
            (FAST.key, RunRecord("foreign_load", reason="busy", wall_s=7.0)),
            ("default", ok(2.0)),
        ]
        for order, (setting_key, record) in enumerate(made):
            phase = "warmup" if order == 0 else "search"
            store.add_run(study.id, None, phase, 0, order, record, setting_key=setting_key)
        table = study_table(store, study)
    ratios = dict(zip(table.rows["key"], table.rows["ratio"], strict=True))
    assert ratios == {"default": 1.0, FAST.key: 0.5, BROKEN.key: float("inf")}
    assert [place.app for place in table.cells.values()] == ["jacobi3d"]
    assert read_table(f"study:{study.hash[:8]}", work / "r.db").names == ["eager"]


def test_a_dataset_has_a_row_per_setting_and_cell(recorded: Path) -> None:
    table = dataset_table(load(recorded))
    assert len(table.cells) == 3
    assert len(table.rows) == 3 * len(table.settings)
    assert set(table.rows["n"]) == {2, 12}
    one = dataset_table(load(recorded), apps=["second"])
    assert {place.app for place in one.cells.values()} == {"second"}
    with refused(UsageError, "dataset.app_unknown") as refusal:
        dataset_table(load(recorded), apps=["sekond"])
    assert [name for name in ("first", "second", "third") if name not in str(refusal.value)] == []


def test_only_settings_that_are_right_for_every_operation() -> None:
    """What a class-wide setting is chosen from without --commutative-only."""
    recorded = load("explore-node-xeon")
    every, _ = class_of(recorded, [], [], commutative_only=True)
    assert any(map(commutative_values, every.settings.values()))
    left, cells = class_of(recorded, [], [])
    assert not any(map(commutative_values, left.settings.values()))
    assert set(left.rows["key"]) <= set(left.settings)
    assert set(every.rows["key"]) - set(left.rows["key"])
    assert len(cells) == len(recorded.cells)
    assert not any(
        commutative_values({name: value})
        for name, levels in left.levels.items()
        for value in levels.values()
        if value is not None
    )


def test_a_setting_of_a_dataset_gets_the_names_of_the_library_here() -> None:
    """Recorded under Open MPI 5, proven under 4.1: sm was called vader."""
    order = ("mpi_x", "btl_sm_eager_limit")
    choice = Choice("direct", Setting(dict.fromkeys(order, 4096)), "", (), (), order)
    here = replace(program("a", held_out=False), space=load_space("openmpi", OLD))
    order_here = ("mpi_x", "btl_vader_eager_limit")
    assert in_names_here(choice, [here]).setting == Setting(dict.fromkeys(order_here, 4096))
    assert in_names_here(choice, [here]).by_effect == order_here
    assert in_names_here(choice, []) is choice
