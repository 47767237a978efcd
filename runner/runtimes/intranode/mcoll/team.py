"""The ranks of a node, real or assumed: shared memory, the barrier, and detection of deaths."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from runner.runtimes.core.arena import Arena
from runner.runtimes.intranode.errors import IntranodeError
from runner.runtimes.intranode.mcoll.program_records import COUNTER
from runner.runtimes.intranode.mcoll.topology import Topology
from runner.runtimes.intranode.processes import Processes
from runner.runtimes.workers.affinity import cpu_mask, is_crowded

_LEAST = 1 << 16
"""Bytes of a buffer."""


def topology_of(comm: Any, nodes: int) -> tuple[Topology, bool]:
    """The nodes of all ranks, and True if they are assumed; collective.

    ``nodes``: the number into which a single machine is split; ignored on several machines. Raises
    :class:`IntranodeError` on all ranks alike.
    """
    from mpi4py import MPI

    local = comm.Split_type(MPI.COMM_TYPE_SHARED)
    keys = comm.allgather(local.bcast(comm.rank))
    local.Free()
    if nodes and len(set(keys)) == 1:
        return Topology.of_equal_nodes(comm.size, nodes), True
    return Topology.of(keys), False


class Team:
    """The ranks of this rank's node; created by all ranks of ``comm``.

    Raises :class:`runner.runtimes.core.arena.ArenaError` in all of them if one cannot share memory.
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
        self._processes = Processes(self.arena.node, f"local rank {self.local}")
        # The ranks of all assumed nodes share the cores.
        everyone = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.is_crowded = is_crowded(1, everyone.allgather(cpu_mask()))
        """True if the machine has more ranks than cores."""
        everyone.Free()
        if self.arena.count != topology.locals:
            raise IntranodeError(
                f"{topology.locals} ranks of a node do not share memory; start them on one machine",
                code="intranode.call",
            )
        self._sizes, self._places = [0] * 3, [0] * 3

    def share(self, array: NDArray[Any]) -> int:
        """The address of the array of local rank 0; collective in the node."""
        address: int = self.arena.node.bcast(array.ctypes.data)
        return address

    def buffer(self, turn: int, size: int) -> int:
        """The address of a buffer of the node with at least this many bytes; collective in it.

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

    def deaths(self) -> str:
        """The dead ranks of this node as text; it checks only now and then."""
        return ", ".join(self._processes.deaths().values())

    def close(self) -> None:
        """Free the communicator; collective."""
        self.arena.close()
