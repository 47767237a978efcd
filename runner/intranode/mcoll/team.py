"""The ranks of a node, real or assumed: shared memory, the barrier, and whether all are alive."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any

from numpy.typing import NDArray

from runner.guard import stat_fields
from runner.intranode.errors import IntranodeError
from runner.intranode.mcoll.topology import Topology
from runner.intranode.mcoll.words import COUNTER
from runner.native.arena import Arena
from runner.workers.affinity import cpu_mask, crowded

_CHECK_S = 0.05
"""Seconds between two looks at the processes of the other ranks."""
_LEAST = 1 << 16
"""Bytes of a buffer."""
_GONE = "ZX"
"""States of a process that has ended."""


def topology_of(comm: Any, nodes: int) -> tuple[Topology, bool]:
    """The nodes of all ranks, and whether they are assumed; collective.

    ``nodes``: into how many a single machine is split; several machines stay what they are.
    Raises :class:`IntranodeError` on all ranks alike.
    """
    from mpi4py import MPI

    local = comm.Split_type(MPI.COMM_TYPE_SHARED)
    keys = comm.allgather(local.bcast(comm.rank))
    local.Free()
    if nodes and len(set(keys)) == 1:
        return Topology.assumed(comm.size, nodes), True
    return Topology.of(keys), False


class Team:
    """The ranks of this rank's node; made by all ranks of ``comm``.

    Raises :class:`runner.native.arena.ArenaError` in all of them if one cannot share memory.
    """

    def __init__(self, comm: Any, topology: Topology) -> None:
        from mpi4py import MPI

        self.node, self.local = topology.places[comm.rank]
        part = comm.Split(self.node, self.local)
        self.arena = Arena(part)
        part.Free()
        self._own = self.arena.zeros(COUNTER.size >> 3, "int64")
        self.barrier = self.share(self._own)
        """The address of the barrier's counter."""
        fields = stat_fields(os.getpid())
        born = int(fields[1][19]) if fields else 0
        self._processes = self.arena.node.allgather((os.getpid(), born))
        # The ranks of all assumed nodes share the cores.
        everyone = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.crowded = crowded(1, everyone.allgather(cpu_mask()))
        """Whether the machine has more ranks than cores."""
        everyone.Free()
        if self.arena.count != topology.locals:
            raise IntranodeError(
                f"{topology.locals} ranks of a node do not share memory; start them on one machine"
            )
        self._checked = 0.0
        self._sizes, self._places = [0] * 3, [0] * 3

    def share(self, array: NDArray[Any]) -> int:
        """The address of the array of local rank 0; collective in the node."""
        address: int = self.arena.node.bcast(array.ctypes.data)
        return address

    def buffer(self, turn: int, size: int) -> int:
        """The address of a buffer of the node of this many bytes or more; collective in it.

        Buffers grow; their pages are in the part of local rank 0.
        """
        if size > self._sizes[turn]:
            self._sizes[turn] = max(size, 2 * self._sizes[turn], _LEAST)
            array = self.arena.zeros(0 if self.local else self._sizes[turn], "uint8")
            self._places[turn] = self.share(array)
        return self._places[turn]

    def view(self, address: int, size: int) -> NDArray[Any]:
        """Bytes of the node's memory."""
        return self.arena.view(address, size, "uint8")

    def lost(self) -> str:
        """The ranks of this node that have died, in words; it looks now and then only."""
        now = monotonic()
        if now - self._checked < _CHECK_S:
            return ""
        self._checked = now
        gone = [n for n, process in enumerate(self._processes) if not _alive(*process)]
        return ", ".join(f"local rank {n} (process {self._processes[n][0]})" for n in gone)

    def close(self) -> None:
        """Give the communicator back; collective."""
        self.arena.close()


def _alive(pid: int, born: int) -> bool:
    """Whether the process that had started then still runs."""
    fields = stat_fields(pid)
    return fields is not None and fields[1][0] not in _GONE and int(fields[1][19]) == born
