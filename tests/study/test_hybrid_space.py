"""Launches of settings with threads: ranks, cores and variables that go together."""

from __future__ import annotations

import itertools
import os

import pytest

from autotune.api.target import find_target
from autotune.config.app import App, Input
from autotune.config.cluster import Cluster
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space, load_space, parse_expression
from autotune.targets.layout import Layout, replaced_note, require_room
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW, OLD

MPICH = Library("mpich", "4.2.0", "/opt/mpich/bin/mpiexec", "/opt/mpich/bin")


def target(cores: int, library: Library = NEW, ranks: int | None = None) -> Target:
    app = App(name="own", command=("program",), inputs={"default": Input()})
    cluster = Cluster(name="own", cores_per_node=cores)
    return Target(app, "default", ranks or cores, cluster, library, cores)


def space_of(wanted: Target, name: str = "hybrid") -> Space:
    return load_space(name, wanted.library, wanted.facts)


def launch(wanted: Target, setting: str) -> LaunchSpec:
    space = space_of(wanted)
    chosen = Setting.parse(setting)
    assert not space.violations(chosen)
    return wanted.spec(space, chosen)


@case_table("library", [OLD, NEW, MPICH])
def test_the_default_is_flat_with_one_thread(library: Library) -> None:
    spec = launch(target(8, library), "default")
    assert (spec.ranks, spec.threads, spec.placement) == (8, 1, {})
    assert spec.variables == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_each_rank_gets_the_cores_of_its_threads(library: Library) -> None:
    spec = launch(target(8, library), "threads=4,OMP_PROC_BIND=close")
    assert (spec.ranks, spec.threads) == (2, 4)
    assert spec.placement == {"map_by": "slot:PE=4", "bind_to": "core"}
    assert spec.variables == {"OMP_NUM_THREADS": "4", "OMP_PROC_BIND": "close"}
    spec = launch(target(8, library), "processes=2,threads=2")
    assert (spec.ranks, spec.placement["map_by"]) == (2, "slot:PE=2")


def test_a_search_begins_with_the_layouts() -> None:
    keys = [start.key for start in space_of(target(12)).starts]
    assert keys == ["threads=2", "threads=4"]


def test_without_threads_in_the_space_the_environment_stays() -> None:
    wanted = target(2)
    assert wanted.spec(space_of(wanted, "openmpi"), DEFAULT).variables == {}
    assert wanted.spec(None, DEFAULT).variables == {}


@case_table("ranks", [1, 2, 6, 8])
def test_every_layout_on_at_most_these_cores_is_there_once(ranks: int) -> None:
    wanted = target(8, ranks=ranks)
    space = space_of(wanted)
    require_room(space, ranks)
    found = [
        Layout.of(ranks, space.launched(setting).get("resource", {}))
        for setting in space.enumerate()
        if not setting.keys() - {"threads", "processes"}
    ]
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    pairs = [(p, t) for p, t in itertools.product(divisors, divisors) if p * t <= ranks]
    assert sorted((lay.ranks, lay.threads) for lay in found) == pairs


def test_variables_without_threads_or_without_cores_of_their_own_are_left_out() -> None:
    assert space_of(target(4)).canonical({"OMP_WAIT_POLICY": "active"}) == DEFAULT
    crowded = space_of(target(2, ranks=4))
    two = Setting.parse("threads=2")
    assert (
        crowded.canonical(two.with_values({"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"})) == two
    )
    assert len(crowded.canonical(two.with_values({"OMP_WAIT_POLICY": "active"}))) == 2
    assert not crowded.is_valid(Setting.parse("threads=4"))
    assert "OMP_PROC_BIND" not in space_of(target(4, MPICH))


def test_mistakes_are_told() -> None:
    for resources, words in [
        ({"threads": "3"}, {"threads=3", "8"}),
        ({"processes": "4", "threads": "4"}, {"4", "threads=4", "16", "8"}),
        ({"threads": "2", "workers": "3"}, {"threads=2", "workers=3", "8"}),
    ]:
        with refused(UsageError, "layout.cores") as told:
            Layout.of(8, resources)
        assert words <= set(str(told.value).split()), told.value
    assert Layout.of(8, {"threads": "2", "workers": "2"}).cores_each == 4
    space, idle = space_of(target(8)), Setting.parse("processes=4,threads=2")
    assert len(space.violations(idle)) == 1
    [rule] = space.broken_rules(idle)
    assert str(rule.expr) == str(parse_expression("processes * threads < ranks"))


def test_the_users_own_number_of_threads_is_told_where_it_is_replaced() -> None:
    wanted = target(2)
    own = {"OMP_NUM_THREADS": "7"}
    note = replaced_note(space_of(wanted), own)
    assert note is not None
    assert note.data == {"variable": "OMP_NUM_THREADS", "value": "7"}
    assert replaced_note(space_of(wanted, "openmpi"), own) is None
    assert replaced_note(space_of(wanted), {}) is None


def test_the_space_is_joined_with_that_of_the_library() -> None:
    wanted = find_target(TargetRequest(program=("true",), ranks=2))
    space = wanted.space("openmpi+hybrid")
    assert {"threads", "map_by"} <= set(space.names)
    chosen = Setting.parse("threads=2,bind_to=none,OMP_PROC_BIND=spread")
    assert wanted.spec(space, chosen).placement == {"bind_to": "none"}


@pytest.mark.parametrize(
    ("app", "words"), [("jacobi3d", ("--variant", "openmp")), ("nas-cg", ("--openmp",))]
)
def test_shipped_programs_have_threads_where_the_setting_has(
    app: str, words: tuple[str, ...]
) -> None:
    wanted = find_target(TargetRequest(app=app, ranks=2))
    space = wanted.space("hybrid")
    assert space.name == f"hybrid-{app}"
    for setting in (DEFAULT, Setting.parse("processes=1")):
        assert wanted.spec(space, setting).program == wanted.program
    if len(os.sched_getaffinity(0)) > 1:
        threaded = wanted.spec(space, Setting.parse("threads=2"))
        assert threaded.program == (*wanted.program, *words)
        assert threaded.ranks == 1
