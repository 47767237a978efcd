"""The space of components of collectives: its conditions, and every level under real libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autotune.space import Setting, Space, load_space
from autotune.space.check import check_file
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.case_table import case_table
from tests.mpis import built, library_named
from tests.space.libraries import CLUSTER, NEW, OLD, ONE_NODE

NAME = "openmpi-collectives"
SOURCE = (Path(__file__).parents[1] / "collectives.c").read_text()


@pytest.fixture
def space(open_mpi: Library) -> Space:
    return load_space(NAME, open_mpi, ONE_NODE)


@case_table(
    ("text", "left"),
    [
        ("coll_tuned_bcast_algorithm=2", "coll_tuned_bcast_algorithm=2"),
        ("coll_tuned_bcast_algorithm=2,coll_sm_priority=40", "coll_sm_priority=40"),
        ("coll_tuned_reduce_algorithm=1,coll_adapt_priority=40", "coll_adapt_priority=40"),
        ("coll_tuned_barrier_algorithm=1,coll_sm_priority=40", "coll_sm_priority=40"),
        (
            "coll_tuned_barrier_algorithm=1,coll_adapt_priority=40",
            "coll_tuned_barrier_algorithm=1,coll_adapt_priority=40",
        ),
        (
            "coll_tuned_allgather_algorithm=1,coll_sm_priority=40",
            "coll_tuned_allgather_algorithm=1,coll_sm_priority=40",
        ),
        ("coll_sm_tree_degree=2,coll_adapt_bcast_algorithm=3", "default"),
    ],
)
def test_parameters_of_components_not_in_force_are_left_out(
    space: Space, text: str, left: str
) -> None:
    assert space.canonical(Setting.parse(text)) == Setting.parse(left)


def test_two_components_are_not_raised_at_once(space: Space) -> None:
    both = Setting.parse("coll_sm_priority=40,coll_adapt_priority=40")
    assert all(space.is_valid(Setting({name: value})) for name, value in both.items())
    assert any("coll_adapt_priority" in rule.expr.names for rule in space.broken_rules(both))
    assert not space.is_valid(both)


@pytest.mark.parametrize("library", [NEW, OLD])
def test_between_nodes_some_collectives_stay_with_tuned(library: Library) -> None:
    space = load_space("openmpi", library, CLUSTER)
    words = "coll_tuned_alltoall_algorithm=1,coll_tuned_barrier_algorithm=1"

    def left(priority: str) -> set[str]:
        return {*space.canonical(Setting.parse(f"{words},coll_han_priority={priority}"))}

    assert "coll_tuned_barrier_algorithm" in left("0")
    assert "coll_tuned_barrier_algorithm" not in left("35")
    assert "coll_tuned_alltoall_algorithm" in left("0") & left("35")


@pytest.fixture(params=["openmpi-4.1", "openmpi-5"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    with Runner(adapter(library_named(request.param)), guard=False) as started:
        yield started


@pytest.mark.mpi
def test_the_space_passes_the_check(runner: Runner) -> None:
    assert [str(error) for error in check_file(NAME, runner.adapter.library).errors] == []


def settings_of(space: Space, base: Space) -> list[Setting]:
    """Every level of every parameter that ``base`` lacks, with its component's priority."""
    found = []
    for parameter in space:
        if parameter.name in base:
            continue
        component = parameter.name.split("_")[1]
        raised = {f"coll_{component}_priority": 40}
        found += [Setting({**raised, parameter.name: level}) for level in parameter.levels]
    return list(dict.fromkeys(found))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_level_starts_and_gives_right_results(
    runner: Runner, ranks: int, tmp_path: Path
) -> None:
    library: Library = runner.adapter.library
    program = str(built(library, tmp_path, SOURCE))
    facts = {"ranks": ranks, "cores": 2, "nodes": 1}
    space, base = (load_space(name, library, facts) for name in (NAME, "openmpi"))
    settings = settings_of(space, base)
    assert len(settings) > 25
    rng = np.random.default_rng(ranks)
    raised = [s for s in settings if len(s) == 1]
    # The raised components among random algorithms of coll/tuned.
    samples = [base.sample(rng) for _ in range(10)]
    others = [{n: v for n, v in one.items() if n.startswith("coll_")} for one in samples]
    mixed = [Setting({**one, **raised[at % len(raised)]}) for at, one in enumerate(others)]
    for setting in [*settings, *map(space.canonical, mixed)]:
        assert space.is_valid(setting), setting
        launched = space.launched(setting).get("mca", {})
        spec = LaunchSpec(
            (program,), ranks, {"mca": launched}, verify="right", timeout_s=60,
            oversubscribe=ranks > 2,
        )  # fmt: skip
        record = runner.run(spec)
        assert record.valid, f"{setting}: {record.reason}"
        states = {name: back.state for name, back in record.read_back.items() if name in setting}
        told = f"{setting}: {states}"
        assert set(states.values()) == {"in force"}, told  # data
