"""Which process is which rank, and where it may run: seen from outside, through /proc."""

from __future__ import annotations

from pathlib import Path

from runner.supervise import _procfs
from runner.supervise.model import RankSeen

FIRST_LOOK_S = 0.03
"""Looks are at 1, 2, 4, 8, ... times this after the start: early enough for short programs, rare
enough not to disturb long ones."""


class RankWatch:
    """Looks for ``ranks`` ranks below ``root`` until all were seen twice with the same affinity.

    While hwloc discovers the machine it binds the whole process to one CPU after the other and
    then back: 0.2 s in MPI_Init of Open MPI 4.1 were seen, in which every rank is on CPU 0.  With
    ``ready_file`` no look before that file exists counts, and one at that moment is enough.
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        env: dict[str, str],
        ranks: int,
        ready_file: str | None = None,
    ) -> None:
        # A variable that the launcher itself inherits says nothing about its children.
        self._variables = [name.encode() for name in variables if name not in env]
        self._ranks = ranks
        self._ready_file = None if ready_file is None else Path(ready_file)
        self._seen: dict[int, RankSeen] = {}
        self._gap_s = FIRST_LOOK_S
        self._settled = not (self._variables and ranks > 0)
        self.next_s: float | None = None if self._settled else FIRST_LOOK_S
        """Seconds after the start at which to look again; None: enough was seen."""

    def look(self, root: int) -> None:
        """Take one look; about 0.1 ms per process of the tree."""
        if self._ready_file is None or self._ready_file.exists():
            now = self._look_now(root)
            complete = len(now) == self._ranks
            self._settled = complete and (self._ready_file is not None or now == self._seen)
            if complete or len(now) >= len(self._seen):
                self._seen = now
        self.next_s = None if self._settled else (self.next_s or 0.0) + self._gap_s
        self._gap_s *= 2

    def result(self) -> tuple[RankSeen, ...] | None:
        """All ranks in order, or None unless each was seen (once is enough)."""
        if len(self._seen) != self._ranks or not self._ranks:
            return None
        return tuple(self._seen[rank] for rank in sorted(self._seen))

    def _look_now(self, root: int) -> dict[int, RankSeen]:
        processes: dict[int, list[int]] = {}
        for pid in _procfs.descendants(root):
            rank = self._rank_of(pid)
            if rank is not None:
                processes.setdefault(rank, []).append(pid)
        seen = {}
        for rank, pids in processes.items():
            pid = _program(pids)
            cpus = _procfs.cpus_allowed(pid)
            if cpus is not None:
                seen[rank] = RankSeen(rank, pid, cpus, _procfs.exe(pid))
        return seen

    def _rank_of(self, pid: int) -> int | None:
        env = _procfs.environ(pid)
        for name in self._variables:
            if env.get(name, b"").isdigit():
                return int(env[name])
        return None


def _program(pids: list[int]) -> int:
    """The rank itself among processes with the same rank variable.

    Wrapper scripts are above it, helpers that it started below it: take the innermost process that
    loaded MPI (else the innermost), then go up while the parent runs the same program file.
    """
    if len(pids) == 1:
        return pids[0]
    chosen = next((pid for pid in reversed(pids) if _procfs.maps_mpi(pid)), pids[-1])
    while (
        (parent := _procfs.parent_of(chosen)) in pids
        and parent is not None
        and _procfs.exe(parent) == _procfs.exe(chosen)
    ):
        chosen = parent
    return chosen
