"""Reads back how many OpenMP threads each rank had, and on which CPUs they ran.

The OpenMP run-time of the ranks reports it: with ``OMP_DISPLAY_AFFINITY`` it writes a line for each
thread of a team when the team is formed, and again only if the team has changed. Counting the tasks
in /proc would not do. MPI libraries have threads with the same name and affinity; the threads of a
team do not exist before its first region; and /proc does not show ranks on other nodes.

The run-times of gcc (9 and newer), LLVM and Intel know the variables. A program without OpenMP
reports nothing, and its threads are ``not observable``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from runner.cpus import cpu_list, cpus_of, parse_cpus
from runner.placement import threads_per_core
from runner.supervise.messages import RankSnapshot
from runner.types import LaunchSpec, ReadBack

MARK = "autotune-thread"
"""The word in each line of such a report; the supervisor keeps these lines separately."""
_VARIABLES = {
    "OMP_DISPLAY_AFFINITY": "TRUE",
    # Host, process, nesting level, number of the thread, threads of the team, CPUs of the thread.
    "OMP_AFFINITY_FORMAT": f"{MARK} %H %P %L %n %N %A",
}
_LINE = re.compile(
    MARK
    + r" (\S{1,255}) ([0-9]{1,9}) ([0-9]{1,4}) ([0-9]{1,6}) ([0-9]{1,6}) ([0-9,-]{1,1000})(?!\S)"
)
_SOURCE = "OpenMP run-time of the ranks"
_BINDS = ("true", "close", "spread", "master", "primary")


@dataclass
class Team:
    """The threads of one process as reported by its run-time; ``cpus`` by number of thread."""

    size: int = 0
    cpus: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def all_cpus(self) -> frozenset[int]:
        return frozenset().union(*self.cpus.values())


Teams = dict[tuple[str, int], Team]
"""The teams by host and process id."""


def with_report(spec: LaunchSpec) -> LaunchSpec:
    """The launch with the variables that make OpenMP report, if the launch sets ``threads``."""
    if not asks(spec):
        return spec
    return replace(spec, variables=spec.variables | _VARIABLES)


def asks(spec: LaunchSpec) -> bool:
    """True if the threads of a launch are read back."""
    return spec.read_back and spec.threads > 1


def binds_threads(spec: LaunchSpec) -> bool:
    """True if the launch asks OpenMP to bind threads; a rank's initial thread is one of them."""
    env = {**os.environ, **spec.variables}
    policy = env.get("OMP_PROC_BIND", "").lower().split(",")[0]
    return policy in _BINDS or (not policy and "OMP_PLACES" in env)


def teams_of(lines: Iterable[str]) -> Teams:
    """The teams in the reports of a run; incomplete lines are left out.

    Nested teams are left out, too: the setting does not cover them.
    """
    teams: Teams = {}
    for line in lines:
        whole = _LINE.search(line)
        if whole is None:
            continue
        pid, level, number, size = map(int, whole.groups()[1:5])
        try:
            cpus = parse_cpus(whole[6])
        except ValueError:
            continue
        if level <= 1:
            team = teams.setdefault((whole[1], pid), Team())
            team.size = max(team.size, size)
            team.cpus[number] = cpus
    return teams


def rank_bindings(ranks: Sequence[RankSnapshot], teams: Teams) -> list[str]:
    """The CPU list of each rank: the CPUs of its initial thread and of all threads of its team."""
    own = {pid: team.all_cpus for (_, pid), team in teams.items()}
    return [cpu_list(cpus_of(rank.cpus) | own.get(rank.pid, frozenset())) for rank in ranks]


def read_back_threads(spec: LaunchSpec, teams: Teams) -> dict[str, ReadBack]:
    """The state of ``threads``, if the launch asks for them.

    It is altered if a team has another number of threads, or if a thread that the setting's
    OMP_PROC_BIND should have bound to a place may leave it.
    """
    if not asks(spec):
        return {}
    return {"threads": _state(spec, teams, str(spec.threads))}


def _state(spec: LaunchSpec, teams: Teams, request: str) -> ReadBack:
    if not teams:
        return ReadBack("not observable", request, None, "no OpenMP run-time reported threads")
    wrong = sorted({team.size for team in teams.values()} - {spec.threads})
    if wrong:
        return ReadBack("altered", request, ", ".join(map(str, wrong)), _SOURCE)
    if "OMP_PROC_BIND" in spec.variables and binds_threads(spec):
        width = 1 if spec.variables.get("OMP_PLACES") == "threads" else threads_per_core()
        loose = [c for team in teams.values() for c in team.cpus.values() if len(c) > width]
        if loose:
            words = f"{request}, not bound (one may use the CPUs {cpu_list(loose[0])})"
            return ReadBack("altered", request, words, _SOURCE)
    if len(teams) < spec.ranks:
        words = f"{len(teams)} of {spec.ranks} ranks reported threads"
        return ReadBack("not observable", request, request, words)
    return ReadBack("in force", request, request, _SOURCE)
