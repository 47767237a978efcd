"""Rules files of coll/tuned: how they are read, and which forced algorithms act beside one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.openmpi.rules import (
    COLLECTIVES,
    ENABLE,
    FILE,
    RulesFile,
    forced_algorithms,
    read_rules,
)
from runner.types import LaunchSpec, ReadBack, RunRecord
from tests.case_table import case_table
from tests.mpis import built, library_named

SOURCE = (Path(__file__).parents[1] / "collectives.c").read_text()
BARRIER, BCAST = COLLECTIVES.index("barrier"), COLLECTIVES.index("bcast")
ALGORITHM, SEGMENT = "coll_tuned_bcast_algorithm", "coll_tuned_bcast_algorithm_segmentsize"


def rules(collective: int, *lines: str, ranks: int = 1) -> str:
    return "\n".join(["1", str(collective), "1", str(ranks), str(len(lines)), *lines])


# What 4.1.4 did with each text, seen by the functions that it called.
READ = {
    "plain": (rules(2, "0 1 0 0"), {"allreduce": {1: {0: 1}}}),
    "one line": ("1 2 1 2 1 0 1 0 0", {"allreduce": {2: {0: 1}}}),
    "comment": ("1\n2 # allreduce 7\n1\n2\n1\n0 1 0 0 # 9", {"allreduce": {2: {0: 1}}}),
    "words": ("one 1 x\n2\n1\n2\n1\n0 1 0 0", {"allreduce": {2: {0: 1}}}),
    "bases": (rules(2, "0x0 01 0 0"), {"allreduce": {1: {0: 1}}}),
    "twice": ("2\n2\n1\n2\n1\n0 1 0 0\n2\n1\n2\n1\n0 4 0 0", {"allreduce": {2: {0: 4}}}),
    "none": ("0", {}),
    "first size": (rules(2, "4 1 0 0"), None),
    "negative": (rules(2, "0 1 0 0", ranks=-2), None),
    "too short": ("1\n2\n1\n2\n2\n0 1 0 0", None),
    "version 2": ("rule-file-version-2\n" + rules(2, "0 1 0 0"), None),
    "unknown collective": (rules(99, "0 1 0 0"), None),
    "empty": ("", None),
}


@case_table("case", READ)
def test_a_file_is_read_as_the_library_reads_it(case: str) -> None:
    text, expected = READ[case]
    assert read_rules(text) == expected


@given(st.text(alphabet="0123456789 -#x\nab", max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read_rules(text)
    assert found is None or set(found) <= set(COLLECTIVES)


@case_table(
    ("text", "ranks", "share"),
    [
        (rules(BCAST, "0 6 0 0"), 4, 1.0),
        (rules(BCAST, "0 6 0 0", ranks=64), 4, 1.0),  # The smallest number counts below it, too.
        (rules(BCAST, "0 6 0 0", "1024 0 0 0"), 4, 0.5),
        (rules(BCAST, "0 0 0 0"), 4, 0.0),
        (rules(BARRIER, "0 1 0 0"), 4, 0.0),
        (f"1\n{BCAST}\n2\n1\n1\n0 6 0 0\n8\n1\n0 0 0 0", 4, 1.0),
        (f"1\n{BCAST}\n2\n1\n1\n0 6 0 0\n8\n1\n0 0 0 0", 8, 0.5),
        (f"1\n{BCAST}\n2\n1\n1\n0 0 0 0\n2\n1\n0 6 0 0", 8, 1.0),  # One rank is no communicator.
    ],
)
def test_the_share_of_the_sizes(text: str, ranks: int, share: float) -> None:
    file = RulesFile(Path("f"), read_rules(text))
    assert file.share("bcast", ranks) == pytest.approx(share)


def asked(*names: str) -> dict[str, ReadBack]:
    return {name: ReadBack("in force", "1", "1", "command line") for name in names}


def states(
    place: Path,
    text: str | None,
    *,
    enabled: str = "true",
    file_first: bool = True,
    here: bool = True,
) -> dict[str, str]:
    shown = {ENABLE: (enabled, "environment"), FILE: ("r", "environment")}
    if text is not None:
        (place / "r").write_text(text)
    found = forced_algorithms(
        asked(ALGORITHM, SEGMENT, "coll_tuned_alltoall_algorithm_max_requests", FILE, "btl"),
        shown,
        4,
        file_first=file_first,
        folder=place,
        on_this_machine=here,
    )
    return {name: back.state for name, back in found.items()}


def test_the_file_is_asked_first_for_its_collectives_only(tmp_path: Path) -> None:
    text = rules(BCAST, "0 6 0 0")
    assert states(tmp_path, text) == {ALGORITHM: "inactive", SEGMENT: "inactive"}
    assert states(tmp_path, text, file_first=False) == {}


def test_without_the_switch_nothing_acts(tmp_path: Path) -> None:
    for first in (True, False):
        found = states(tmp_path, rules(BCAST, "0 6 0 0"), enabled="false", file_first=first)
        assert set(found.values()) == {"inactive"}
        assert "btl" not in found
        assert {ALGORITHM, SEGMENT, FILE} <= set(found)


def test_a_file_that_nobody_can_read_here(tmp_path: Path) -> None:
    assert states(tmp_path, None) == {FILE: "inactive"}
    assert states(tmp_path, "1 2") == {FILE: "inactive"}
    elsewhere = states(tmp_path, None, here=False)
    assert set(elsewhere.values()) == {"not observable"}  # data
    assert FILE not in elsewhere


@pytest.fixture(scope="module", params=["openmpi-4.1", "openmpi-5"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    with Runner(adapter(library_named(request.param)), guard=False) as started:
        yield started


def run(runner: Runner, place: Path, text: str, mca: dict[str, str]) -> RunRecord:
    """A run on three ranks, which the algorithm ``two_proc`` refuses, beside a rules file."""
    (place / "table").write_text(text)
    program = (str(built(runner.adapter.library, place, SOURCE)), "canary")
    options = ("--mca", FILE, "table")
    spec = LaunchSpec(
        program,
        3,
        {"mca": {ENABLE: "1", **mca}},
        launch_options=options,
        timeout_s=30,
        verify="right",
        oversubscribe=True,
        cwd=str(place),
    )
    return runner.run(spec)


def two_proc(runner: Runner, collective: str) -> dict[str, str]:
    name = f"coll_tuned_{collective}_algorithm"
    known = runner.adapter.library.params[name].enum or {}
    return {name: next(str(n) for n, word in known.items() if word == "two_proc")}


@pytest.mark.mpi
def test_a_forced_algorithm_beside_a_file_does_what_the_read_back_says(
    runner: Runner, tmp_path: Path
) -> None:
    """``two_proc`` ends a run on three ranks, so it is seen whether the parameter acts."""
    record = run(runner, tmp_path, rules(BARRIER, "0 1 0 0"), two_proc(runner, "barrier"))
    if runner.adapter.library.version_tuple >= (5,):
        assert record.state == "failed"
        return
    assert record.valid, record.reason
    assert record.read_back["coll_tuned_barrier_algorithm"].state == "inactive"
    assert record.read_back[ENABLE].state == "in force"


@pytest.mark.mpi
@pytest.mark.parametrize(
    "runner",
    # In 5 it acts beside any file, as the test above sees.
    ["openmpi-4.1", pytest.param("openmpi-5", marks=pytest.mark.slow)],
    indirect=True,
)
def test_a_forced_algorithm_acts_where_the_file_has_no_rule(runner: Runner, tmp_path: Path) -> None:
    forced = two_proc(runner, "barrier")
    assert run(runner, tmp_path, rules(BCAST, "0 1 0 0"), forced).state == "failed"
    assert run(runner, tmp_path, rules(BARRIER, "0 0 0 0"), forced).state == "failed"
    bcast = {ALGORITHM: "1"}
    record = run(runner, tmp_path, rules(BARRIER, "0 1 0 0"), bcast)
    assert record.read_back[ALGORITHM].state == "in force"


@pytest.mark.mpi
def test_without_the_switch_a_forced_algorithm_is_inactive(runner: Runner, tmp_path: Path) -> None:
    forced = two_proc(runner, "barrier")
    record = run(runner, tmp_path, rules(BCAST, "0 1 0 0"), {**forced, ENABLE: "0"})
    assert record.valid, record.reason
    assert record.read_back["coll_tuned_barrier_algorithm"].state == "inactive"
