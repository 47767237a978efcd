"""MPI jobs of other programs on this node: their ranks, and the CPUs on which these may run.

A rank is known by the rank variable in its environment. Other users' environments cannot be read:
there a launcher's direct children count as ranks. A job consists of the processes of one launcher;
ranks without a launcher on this node (``srun``) belong to the process that started them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from runner.cpus import available_cpus, cpus_of
from runner.guard import command_of
from runner.lock.holder import user_name
from runner.mpi.discover import families
from runner.mpi.library import Library
from runner.process import all_pids, stat_fields
from runner.supervise.process_tree import affinity_of, environ, maps_mpi
from runner.supervise.watches import rank_process


@dataclass(frozen=True)
class JobRank:
    """One rank; ``cpus`` is its affinity, None if not readable."""

    pid: int
    cpus: frozenset[int] | None


@dataclass(frozen=True)
class MpiJob:
    """The ranks of one launcher on this node; ``pid``, ``command``, ``user`` are the launcher's."""

    pid: int
    command: str
    user: str
    ranks: tuple[JobRank, ...]
    library: Library | None
    """Family and version, as far as the launcher's options depend on it; None: unknown."""
    readable: bool
    """True if the environment of the ranks was readable; if not, they are the launcher's
    children."""

    @property
    def cpus(self) -> frozenset[int] | None:
        """CPUs on which one of its ranks may run; None if no affinity is readable."""
        cpu_sets = [rank.cpus for rank in self.ranks if rank.cpus is not None]
        return frozenset().union(*cpu_sets) if cpu_sets else None

    @property
    def bound(self) -> bool:
        """True if each rank may run on some CPUs of this node only."""
        every = available_cpus()
        return all(rank.cpus is not None and rank.cpus < every for rank in self.ranks)


@dataclass(frozen=True)
class _Process:
    parent: int
    name: str
    environment: dict[str, str]
    """Its rank variables; empty if the process is not a rank, or not readable."""
    readable: bool

    @property
    def rank(self) -> str | None:
        return next(iter(self.environment.values()), None)


_Table = Mapping[int, _Process]


def find_jobs(root: int | None = None) -> tuple[MpiJob, ...]:
    """The MPI jobs of this node, by process id.

    Jobs below ``root`` (default: this process; 0: none) are left out, and so is a job that ``root``
    belongs to. About 0.1 ms for each process of the node. Nothing is raised: unreadable or ended
    processes are left out or None.
    """
    root = os.getpid() if root is None else root
    table = _processes()
    around = {root, *_above(root, table)}
    groups: dict[int, list[int]] = {}
    for pid in table:
        starter = _starter(pid, root, table)
        if starter is not None and starter not in around:
            groups.setdefault(starter, []).append(pid)
    return tuple(_job(starter, pids, table) for starter, pids in sorted(groups.items()))


def shared_cpus(jobs: Sequence[MpiJob]) -> list[tuple[MpiJob, MpiJob, frozenset[int]]]:
    """Each pair of jobs whose ranks may run on the same CPUs, with these CPUs."""
    pairs = [
        (one, other, (one.cpus or frozenset()) & (other.cpus or frozenset()))
        for one, other in combinations(jobs, 2)
    ]
    return [pair for pair in pairs if pair[2]]


def _processes() -> _Table:
    variables = [name for kind in families().values() for name in kind.rank_variables]
    table = {}
    for pid in all_pids():
        stat = stat_fields(pid)
        if stat is None or stat[1][0] in "ZX":
            continue
        env = environ(pid)
        values = {
            name: env.get(name.encode(), b"").decode("ascii", "replace") for name in variables
        }
        ranks = {name: value for name, value in values.items() if value.isdecimal()}
        table[pid] = _Process(int(stat[1][1]), stat[0].split(".")[0], ranks, bool(env))
    return table


def _above(pid: int, table: _Table) -> list[int]:
    """The ancestors of ``pid``, the nearest first."""
    ancestors: list[int] = []
    while (process := table.get(pid)) is not None and process.parent in table:
        pid = process.parent
        if pid in ancestors:  # The table is not a snapshot: a process id may have been reused.
            break
        ancestors.append(pid)
    return ancestors


def _starts(pid: int, table: _Table) -> bool:
    """True if the process is a launcher, judged by its name."""
    return any(table[pid].name in kind.launchers for kind in families().values())


def _starter(pid: int, root: int, table: _Table) -> int | None:
    """The launcher of rank ``pid``, or else its first ancestor that is not a rank.

    None if ``pid`` is not a rank, or is below ``root``.
    """
    process = table[pid]
    if _starts(pid, table):
        return None
    if process.rank is None and (
        process.readable or process.parent not in table or not _starts(process.parent, table)
    ):
        return None
    above = _above(pid, table)
    if root in (pid, *above):
        return None
    at = next((i for i, one in enumerate(above) if _starts(one, table)), None)
    if at is None:
        # Under srun a shell has such a variable, too, and so do all its descendants.
        outside = [one for one in above if table[one].rank is None and one != 1]
        return next(iter(outside), pid) if maps_mpi(pid) else None
    # A launcher may have been started by another one: hydra_pmi_proxy by mpirun.
    while at + 1 < len(above) and _starts(above[at + 1], table):
        at += 1
    return above[at]


def _job(starter: int, pids: list[int], table: _Table) -> MpiJob:
    by_rank: dict[object, list[int]] = {}
    for pid in sorted(pids, key=lambda one: len(_above(one, table))):
        # Wrappers and helpers of a rank have its variable, too.
        by_rank.setdefault(table[pid].rank or pid, []).append(pid)
    rank_pids = [rank_process(same) for same in by_rank.values()]
    return MpiJob(
        starter,
        command_of(starter),
        _user(starter),
        tuple(JobRank(pid, _affinity(pid)) for pid in rank_pids),
        _library(rank_pids[0], table),
        all(table[pid].rank is not None for pid in rank_pids),
    )


def _affinity(pid: int) -> frozenset[int] | None:
    text = affinity_of(pid)
    return None if text is None else cpus_of(text)


def _user(pid: int) -> str:
    """Name of the process's user, or the user's number; "?" if the process has ended."""
    try:
        return user_name(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        return "?"


def _library(rank: int, table: _Table) -> Library | None:
    """The library of the first launcher above ``rank`` whose name is unique to one family.

    Other names (mpirun) are shared by families; then the rank variables decide.
    """
    own = table[rank].environment
    for pid in _above(rank, table):
        name = table[pid].name
        kinds = [kind for kind in families().values() if name in kind.launchers]
        if own:
            kinds = [kind for kind in kinds if own.keys() & set(kind.rank_variables)]
        if len(kinds) == 1:
            return Library(kinds[0].family, kinds[0].launchers[name], "", "mpirun")
    return None
