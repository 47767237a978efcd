"""Which algorithms of reductions are right for operations that do not commute, by running them.

reductions.c composes affine maps, exactly. The table of autotune.space.commutativity must call no
algorithm right that is wrong here; a new version of a library is checked by the same runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.dialects import dialect
from autotune.space.commutativity import RIGHT, needs_commutative
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.mpis import built, library_named, on_path

pytestmark = pytest.mark.mpi
SOURCE = Path(__file__).with_name("reductions.c").read_text()
COUNTS = "1,7,3000,40000"
BASES = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
PARAMETER = re.compile(
    rf"(?:coll_(?:tuned|libnbc)_(i?(?:{'|'.join(BASES)}))_algorithm"
    rf"|MPIR_CVAR_(I?(?:{'|'.join(BASES).upper()}))(?:_POSIX)?_INTRA_ALGORITHM"
    rf"|I_MPI_ADJUST_(I?(?:{'|'.join(BASES).upper()})))"
)
BROKEN = {
    "MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM": "noncommutative",
    "MPIR_CVAR_IREDUCE_SCATTER_INTRA_ALGORITHM": "sched_noncommutative",
}
"""These abort with parts of different lengths, whatever the operation."""


def find(name: str) -> Library:
    return on_path(name) if name in ("openmpi-4.1", "mpich-4") else library_named(name)


@contextmanager
def started(library: Library) -> Iterator[Runner]:
    with Runner(adapter(library), guard=False) as runner:
        yield runner


def reductions(
    runner: Runner,
    place: Path,
    collectives: Collection[str],
    parameters: Mapping[str, str],
    sizes: str = "2,3,4,5,8",
) -> list[str]:
    """The lines of one run that say a collective is wrong."""
    library = runner.adapter.library
    own = {"coll_tuned_use_dynamic_rules": "1"} if library.family == "openmpi" else {}
    options = ("--mca", "pml", "ob1", "--mca", "btl", "^ofi") if own else ()
    spec = LaunchSpec(
        (str(place / "reductions"), sizes, COUNTS, *collectives),
        max(map(int, sizes.split(","))),
        parameters={"mca": {**own, **parameters}},
        launch_options=options,
        oversubscribe=True,
        timeout_s=120,
        verify="result (RIGHT|WRONG)",
    )
    record = runner.run(spec)
    assert record.state in ("ok", "not_read_back"), (parameters, record.reason, record.stderr_tail)
    states = {name: record.read_back[name].state for name in parameters}
    assert "altered" not in states.values(), states
    lines = record.stdout_tail.splitlines()
    return [line for line in lines if "WRONG" in line and not line.startswith("result")]


def program(library: Library, place: Path) -> Path:
    built(library, place, SOURCE, "-O2").rename(place / "reductions")
    return place


def levels(library: Library) -> list[tuple[str, str, str]]:
    """(collective, parameter, value) of every algorithm that the library lists."""
    found = []
    for name, info in library.params.items():
        match = PARAMETER.fullmatch(name)
        if match is None or not info.enum:
            continue
        collective = next(filter(None, match.groups())).lower()
        words = info.enum.values() if info.by_name else map(str, info.enum)
        left_out = {"0", "ignore", "auto", "sched_auto", "ccl", BROKEN.get(name, "")}
        found += [(collective, name, word) for word in words if word not in left_out]
    return found


@pytest.mark.parametrize("name", ["openmpi-5", "openmpi-4.1"])
def test_the_algorithms_of_the_shipped_spaces(name: str, tmp_path: Path) -> None:
    library = find(name)
    place = program(library, tmp_path)
    tuned = [one for one in levels(library) if one[1].startswith("coll_tuned_")]
    assert {collective for collective, _, _ in tuned} == {*BASES}
    turns: list[dict[str, tuple[str, str]]] = []
    """Of each run: for each collective, one algorithm that no other run has.

    Some algorithms of other collectives begin with a reduce, so no run has both.
    """
    for collective, parameter, value in tuned:
        apart = {"reduce"} if collective != "reduce" else {*BASES}
        turn = next((one for one in turns if not one.keys() & {collective, *apart}), None)
        if turn is None:
            turns.append(turn := {})
        turn[collective] = (parameter, value)
    with started(library) as runner:
        for turn in turns:
            wrong = reductions(runner, place, turn.keys(), dict(turn.values()), "2,3,4")
            assert {line.split()[0] for line in wrong} == {
                collective for collective, forced in turn.items() if needs_commutative(*forced)
            }, (turn, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["openmpi-5", "openmpi-4.1", "openmpi-4.1.8", "mpich", "mpich-4.0.3", "impi"]
)
def test_every_algorithm_that_a_library_lists(name: str, tmp_path: Path) -> None:
    library = find(name)
    place = program(library, tmp_path)
    listed = levels(library)
    assert listed
    with started(library) as runner:
        for collective, parameter, value in listed:
            if not needs_commutative(parameter, value):
                found = reductions(runner, place, [collective], {parameter: value})
                assert found == [], (parameter, value)


@pytest.mark.parametrize("name", ["openmpi-5", "openmpi-4.1", "mpich"])
@pytest.mark.parametrize("collective", ["allreduce", "reduce"])
def test_a_table_of_rules_that_tables_may_name(name: str, collective: str, tmp_path: Path) -> None:
    """All algorithms that a table of this library may name, each for all sizes of messages.

    Three communicators take three algorithms for the same size of messages in one run.
    """
    library = find(name)
    place = program(library, tmp_path)
    words = dialect(library.family)
    numbers = [
        number
        for number in words.names(library, collective)
        if number != "0" and not needs_commutative(words.parameter(collective), number)
    ]
    assert len(numbers) >= 3
    with started(library) as runner:
        for first in range(0, len(numbers), 3):
            rules = [
                Rule(collective, size, start, numbers[(first + size + at) % len(numbers)])
                for size in (2, 3, 4)
                for at, start in enumerate((0, 32, 1024, 100_000))
            ]
            assert words.commutative_rules(rules) == []
            loading = words.loading(rules, library, tmp_path, "table")
            values = {p.name: str(p.levels[0]) for p in loading}
            assert reductions(runner, place, [collective], values, "2,3,4") == [], rules


def test_a_table_with_a_wrong_algorithm_is_seen(tmp_path: Path) -> None:
    library = library_named("openmpi-5")
    words = dialect("openmpi")
    rules = [Rule("allreduce", 2, 0, "3"), Rule("allreduce", 2, 1024, "4")]
    assert words.commutative_rules(rules) == rules[1:]
    values = {p.name: str(p.levels[0]) for p in words.loading(rules, library, tmp_path, "table")}
    place = program(library, tmp_path)
    with started(library) as runner:
        assert reductions(runner, place, ["allreduce"], values, "4")


def test_every_parameter_of_the_table_is_checked() -> None:
    assert all(PARAMETER.fullmatch(name) for name in RIGHT)
