"""Plans and schedules: what is run when, and which plans are refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.datasets import Dataset, narrow_space
from autotune.datasets.plan import (
    LARGEST_GRID,
    ExplorationPlan,
    PlanCell,
    extend_cell,
    load_plan,
    of_block,
    prepare_dataset,
    size,
)
from autotune.errors import UsageError
from autotune.space import load_space
from autotune.targets.target import Target
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.datasets.conftest import SPACE, make, planted
from tests.refusals import refused

CELL = {"key": "c", "app": "micro", "ranks": 2, "space": "openmpi"}


def plan(kind: str = "grid", **more: object) -> ExplorationPlan:
    return ExplorationPlan.model_validate({"kind": kind, "name": "p", "cells": [CELL], **more})


def cell_of(run_s: float) -> PlanCell:
    return PlanCell.model_validate({**CELL, "run_s": run_s})


@given(st.integers(1, 256), st.floats(0.1, 30), st.integers(1, 4))
def test_blocks_are_short_and_cover_every_setting_once_a_pass(
    count: int, run_s: float, runs: int
) -> None:
    given_plan = plan(runs=runs)
    cut = size(given_plan, cell_of(run_s), count)
    assert cut.blocks == cut.chunks * runs
    empty = _no_runs()
    for number in range(runs):
        blocks = [
            of_block(given_plan, "c", cut, b, range(count + 1), empty)
            for b in range(number * cut.chunks, (number + 1) * cut.chunks)
        ]
        longest = max(map(len, blocks))
        assert sorted(itertools.chain(*blocks)) == list(range(1, count + 1))
        # Cut only as far as the defaults of a block leave room for a setting at all.
        assert longest <= 1 or longest * run_s <= 600


def _no_runs():  # type: ignore[no-untyped-def]
    import pandas as pd

    return pd.DataFrame(columns=["setting", "state", "block", "ratio"])


def test_what_ended_badly_twice_is_not_run_again(tmp_path: Path) -> None:
    found = make(tmp_path / "d", {"c": planted}, blocks=2)
    runs = found.runs("c")
    bad = set(runs.loc[runs["state"] != "ok", "setting"])
    assert bad
    given_plan = plan(runs=3)
    cut = size(given_plan, cell_of(1.0), 10)
    indices = range(len(found.settings("c")))
    first = of_block(given_plan, "c", cut, 1, indices, runs[runs["block"] < 1])
    assert bad <= set(first)
    assert set(of_block(given_plan, "c", cut, 2, indices, runs)) == set(indices) - bad - {0}


def test_an_exploration_goes_on_with_the_best_and_some_others(tmp_path: Path) -> None:
    found: Dataset = make(tmp_path / "d", {"c": planted}, blocks=1)
    runs = found.runs("c")
    given_plan = plan("explore", best=3, more=2)
    cut = size(given_plan, cell_of(1.0), 10)
    indices = range(len(found.settings("c")))
    chosen = of_block(given_plan, "c", cut, 1, indices, runs)
    ranked = runs[(runs["state"] == "ok") & (runs["setting"] > 0)].sort_values("ratio")
    assert set(ranked["setting"][:3]) <= set(chosen)
    assert len(chosen) == 6
    assert 0 not in chosen


def test_the_order_is_random_and_repeatable() -> None:
    given_plan = plan()
    cut = size(given_plan, cell_of(0.1), 40)
    orders = [of_block(given_plan, "c", cut, b, range(41), _no_runs()) for b in (0, 1, 0)]
    assert orders[0] == orders[2]
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cells": [CELL, CELL]}, " c "),
        ({"cells": []}, "cells:"),
        ({"kind": "gird"}, "kind:"),
        ({"run": 3}, "'runs'"),
        ({"cells": [{**CELL, "key": "a b"}]}, "cells.0.key"),
    ],
)
def test_wrong_plans_are_refused(tmp_path: Path, change: dict[str, object], named: str) -> None:
    from autotune.datasets.card import to_toml

    path = tmp_path / "p.toml"
    path.write_text(to_toml({"kind": "grid", "name": "p", "cells": [CELL], **change}))
    with refused(UsageError, "config.invalid") as caught:
        load_plan(str(path))
    assert named in str(caught.value)


def test_cells_that_are_not_there_are_told() -> None:
    with refused(UsageError, "dataset.cell_unknown"):
        plan().select_cells(["d"])


def test_levels_are_checked(open_mpi: Library) -> None:
    space = load_space("openmpi", library=open_mpi, facts={"ranks": 2, "cores": 2, "nodes": 1})
    with refused(UsageError, "parameter.unknown"):
        narrow_space(space, {"btl_sm_eager_limi": ["8k"]}, "plan p, cell c")
    with refused(UsageError, "levels.invalid"):
        narrow_space(space, {"coll_tuned_bcast_algorithm": ["chainn"]}, "plan p, cell c")


def test_a_narrowed_space_keeps_rules_about_what_was_left_out() -> None:
    narrow = narrow_space(SPACE, {"low": [1, 2]}, "x")
    assert narrow.names == ("low",)
    # "flag" is left out and off by default: "low" can do nothing.
    assert list(narrow.enumerate()) == [narrow.canonical({})]


def test_the_list_of_an_explore_plan_does_not_depend_on_the_cells_that_are_named(
    open_mpi: Library,
) -> None:
    from autotune.config.app import load_app
    from autotune.config.cluster import load_cluster

    two = {**CELL, "app": "jacobi3d", "input": "", "space": "openmpi", "key": "d", "ranks": 2}
    known = plan("explore", settings=30, keep=0.3, cells=(two, {**two, "key": "e", "ranks": 4}))

    def resolve(cell: PlanCell) -> Target:
        return Target(load_app(cell.app), None, cell.ranks, load_cluster("local"), open_mpi, 2)

    whole = prepare_dataset(known, known.select_cells([]), resolve)
    part = prepare_dataset(known, known.select_cells(["e"]), resolve)
    assert [p.plan.key for p in part] == ["e"]
    assert part[0].settings == whole[0].settings == whole[1].settings
    full = prepare_dataset(known.model_copy(update={"keep": 1.0}), known.select_cells([]), resolve)
    assert sum(map(len, whole[0].settings)) < 0.6 * sum(map(len, full[0].settings))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        *((f"{kind}-{place}", 20) for kind in ("grid", "explore") for place in ("node", "testbed")),
        # The layouts of a program on two nodes of one core are few.
        *((f"grid-mate-{place}", 10) for place in ("node", "testbed")),
        *((f"grid-mate-nas-{place}", 20) for place in ("node", "testbed")),
        # The ring has hardly anything to choose.
        *((f"grid-tarragon-{place}", 7) for place in ("node", "testbed")),
        *((f"grid-tpod-{place}", 20) for place in ("node", "testbed")),
        ("grid-cab-node", 18),
        ("grid-thesis-testbed", 24),
        *((f"grid-layouts-{place}", 20) for place in ("node", "testbed")),
    ],
)
def test_shipped_plans_can_be_prepared(name: str, least: int, open_mpi: Library) -> None:
    if open_mpi.version_tuple < (5,):
        pytest.skip("the plans' levels are those of Open MPI 5.0")
    from autotune.config.app import load_app
    from autotune.config.cluster import load_cluster

    def resolve(cell: PlanCell) -> Target:
        cluster = load_cluster("local")
        nodes = 4 if cell.cluster == "tb4" else 2
        # Another name is that of a testbed, which is not up here.
        if cell.cluster != "local":
            cluster = cluster.model_copy(update={"nodes": nodes, "cores_per_node": 1})
        return Target(load_app(cell.app), cell.input, cell.ranks, cluster, open_mpi, cores=nodes)

    known = load_plan(name)
    prepared = prepare_dataset(known, known.select_cells([]), resolve)
    for p in prepared:
        assert least <= len(p.settings) <= LARGEST_GRID
        assert len(set(p.settings)) == len(p.settings)
        assert all(p.space.is_valid(setting) for setting in p.settings[1:])
    if "mate" in name:
        assert sum(p.planned_s for p in prepared) <= 20 * 60
    splits = [p.plan.split for p in prepared]
    # Designed on one half; whatever is recorded later may only make the other half larger.
    assert splits.count("design") <= splits.count("report") + 1
    assert {"design", "report"} == set(splits)


@pytest.mark.parametrize("name", ["grid-mate-node", "grid-mate-testbed"])
def test_the_plans_of_mate_vary_layouts_only(name: str) -> None:
    known = load_plan(name)
    assert {cell.app for cell in known.cells} == {"jacobi3d", "cannon", "cloverleaf3d", "flowcart"}
    layout = {"variant", "workers", "odf", "local_x", "local_y", "side", "split"}
    layout |= {"balance", "steal"}
    assert all(layout >= set(cell.levels or {}) >= {"variant"} for cell in known.cells)


@case_table(
    ("begun", "asked", "chunks", "blocks"),
    [
        (3, 6, 1, 6),
        (3, 5, 1, 5),  # Two passes more on three.
        (6, 10, 2, 10),
        (3, 2, 1, 3),  # What is there stays.
        (3, 8, 2, 3),  # Passes that are cut otherwise do not fit behind these.
    ],
)
def test_more_runs_are_more_blocks_behind_those_that_are_there(
    begun: int, asked: int, chunks: int, blocks: int
) -> None:
    known, now = (cell_of(1.0).cell({}).model_copy(update={"blocks": n}) for n in (begun, asked))
    assert extend_cell(known, now, chunks).blocks == blocks


def test_grids_that_are_too_large_are_refused(open_mpi: Library) -> None:
    from autotune.config.app import load_app
    from autotune.config.cluster import load_cluster

    def resolve(cell: PlanCell) -> Target:
        return Target(load_app("micro"), None, 2, load_cluster("local"), open_mpi, cores=2)

    with refused(UsageError, "plan.too_large"):
        prepare_dataset(plan(), plan().select_cells([]), resolve)
