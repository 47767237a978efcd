"""Reports of OpenMP run-times: what is read from them, and what is told of the ranks' threads."""

from __future__ import annotations

import pytest

from runner.placement import read_back_placement
from runner.supervise.messages import RankSnapshot
from runner.supervise.output import Capture
from runner.threads import MARK, Teams, rank_bindings, read_back_threads, teams_of
from runner.types import LaunchSpec
from tests.case_table import case_table


def report(pid: int, *cpus: str, host: str = "a", level: int = 1) -> list[str]:
    return [f"{MARK} {host} {pid} {level} {n} {len(cpus)} {c}" for n, c in enumerate(cpus)]


def spec(threads: int = 2, ranks: int = 2, **env: str) -> LaunchSpec:
    return LaunchSpec(program=("p",), ranks=ranks, threads=threads, variables=env)


def state(teams: Teams, asked: LaunchSpec) -> tuple[str, str | None]:
    found = read_back_threads(asked, teams)["threads"]
    return found.state, found.effective


def test_the_team_of_each_rank_counts() -> None:
    both = teams_of([*report(1, "0-1", "0-1"), *report(2, "2-3", "2-3")])
    assert state(both, spec()) == ("in force", "2")  # data
    assert state(both, spec(threads=4)) == ("altered", "2")
    assert state(teams_of(report(1, "0-1", "0-1")), spec()) == ("not observable", "2")  # data
    assert state({}, spec())[0] == "not observable"  # data
    assert read_back_threads(spec(threads=1), both) == {}


def test_processes_of_two_nodes_are_told_apart() -> None:
    teams = teams_of([*report(1, "0", "1"), *report(1, "0", "1", host="b")])
    assert len(teams) == 2


def test_a_thread_that_should_be_bound_and_is_not_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.threads.threads_per_core", lambda: 2)
    close = spec(ranks=1, OMP_PROC_BIND="close")
    assert state(teams_of(report(1, "0,4", "1,5")), close)[0] == "in force"  # data
    assert state(teams_of(report(1, "0-3", "1,5")), close)[0] == "altered"
    assert state(teams_of(report(1, "0-3", "0-3")), spec(ranks=1))[0] == "in force"  # data
    single = spec(ranks=1, OMP_PROC_BIND="close", OMP_PLACES="threads")
    assert state(teams_of(report(1, "0,4", "1,5")), single)[0] == "altered"


@case_table(
    "line",
    [
        f"{MARK} a 1 1 0",
        f"{MARK} a 1 1 0 2 0-",
        f"{MARK} a x 1 0 2 0-1",
        f"{MARK} a 1 1 0 2 99999999999",
        *report(1, "0", "1", "2", level=2),
    ],
)
def test_lines_that_are_not_whole_or_of_inner_teams_are_left_out(line: str) -> None:
    assert teams_of([line]) == {}


def test_the_binding_of_a_rank_is_that_of_all_its_threads() -> None:
    """A bound initial thread alone would look like a rank that was given one core."""
    ranks = [RankSnapshot(0, 7, "0", ""), RankSnapshot(1, 8, "2-3", "")]
    assert rank_bindings(ranks, teams_of(report(7, "0", "1"))) == ["0-1", "2-3"]
    asked = {"map_by": "slot:PE=8", "bind_to": "core"}
    partly = read_back_placement(asked, ["0"], partly=True)["bind_to"].state
    assert partly == "not observable"  # data
    assert read_back_placement(asked, ["0"])["bind_to"].state == "altered"


def test_reports_leave_the_programs_own_messages_whole() -> None:
    capture = Capture({}, 100, 100, f"{MARK}|another")
    text = "first\n" + "".join(f"{line}\n" for line in 50 * report(1, "0", "1")) + "[1]: last"
    for at in range(0, len(text), 7):
        capture.add_stderr(text[at : at + 7].encode())
    capture.close()
    assert capture.texts["stderr_tail"] == "first\n[1]: last"
    assert capture.marked_lines == tuple(report(1, "0", "1"))
    assert capture.total_bytes == len("first\n[1]: last")
