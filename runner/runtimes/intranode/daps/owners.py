"""The ranks of a node as owners of progress: their records, and one thread's view of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.arena import Arena, ArenaError
from runner.runtimes.core.machine_code import address_of
from runner.runtimes.core.memory import Memory
from runner.runtimes.intranode.daps import sockets
from runner.runtimes.intranode.daps.config import Config
from runner.runtimes.intranode.daps.daps_records import (
    BUFFERS,
    INBOX,
    LINK,
    LINK_SIZE,
    ME,
    MESSAGE,
    OWNER,
    RING,
    ROUNDS,
    SLOT,
    SLOT_SIZE,
    SLOTS,
    STAGE,
)
from runner.runtimes.intranode.errors import ConfigError
from runner.runtimes.intranode.processes import Processes
from runner.runtimes.workers.affinity import CpuSet, cpu_mask, is_crowded

Words = NDArray[np.int64]
_POLL_IN = 1
"""The event of ``poll`` for available data."""


class Owners:
    """The ranks of this node; created by all ranks of ``comm``.

    ``nodes``: assume this number of nodes, contiguous groups of ranks, on one machine; 0: the real
    nodes. Raises :class:`IntranodeError` in all ranks.
    """

    def __init__(self, comm: Any, config: Config, nodes: int) -> None:
        if not 0 <= nodes <= comm.size:
            raise ConfigError(
                f"--nodes {nodes}: expected 0 to {comm.size}, the number of ranks",
                code="intranode.option",
            )
        self.comm = comm
        group, problem = comm.Split(comm.rank * nodes // comm.size), ""
        try:
            self.arena = Arena(group)
            if nodes and self.arena.count != group.size:
                problem = (
                    f"--nodes {nodes}: the ranks of an assumed node are on several machines; "
                    "leave it out"
                )
        except ArenaError as error:
            problem = str(error)
        sockets.agree(comm, problem)
        group.Free()
        self.node = self.arena.node
        first = self.node.bcast(comm.rank)
        firsts = comm.allgather(first)
        order = sorted(set(firsts))
        self.nodes: list[int] = [order.index(one) for one in firsts]
        """The number of the node of each rank of the job."""
        self.locals: list[int] = self.node.allgather(comm.rank)
        """The ranks of this node."""
        self.remotes = [other for other in range(comm.size) if other not in self.locals]
        self.eager = config.eager
        self.mask = cpu_mask()
        host = sockets.this_host().split()[0]
        everyone = comm.allgather((host, self.mask))
        self.masks: list[CpuSet] = [mask for other, mask in everyone if other == host]
        """The cores of all ranks on this machine."""
        self._before = everyone[: comm.rank].count((host, self.mask))
        self._processes = Processes(self.node, f"rank {comm.rank}")
        self.connections = list(sockets.join(comm, self.nodes).values())
        own = [one.fileno() for one in self.connections]
        self.descriptors = sockets.share(comm, self.node, own)
        """The connections of each rank of the node, in the order of ``remotes``."""
        self.record = self._words(OWNER.size)
        self.links = [self._link(other) for other in self.remotes]
        self.done_counts, self.seen_counts = self._words(8 * comm.size), self._words(8 * comm.size)
        self.beats = self._words(8 * 2 * ROUNDS)
        self._fill()
        self.addresses: list[int] = self.node.allgather(self.record.ctypes.data)
        self._knowledge: list[Any] = []
        comm.Barrier()

    def _words(self, size: int) -> Words:
        words: Words = self.arena.zeros(size >> 3, np.int64)
        return words

    def _table(self, addresses: Sequence[int]) -> int:
        """The address of a shared table."""
        table = self._words(8 * len(addresses) + 8)
        table[: len(addresses)] = addresses
        return table.ctypes.data

    def _link(self, peer: int) -> Words:
        link = self._words(LINK_SIZE)
        link[LINK.peer >> 3] = peer
        for field, size in (
            (LINK.in_stage, STAGE),
            (LINK.out_stage, STAGE),
            (LINK.ring, RING * MESSAGE.size),
        ):
            link[field >> 3] = self._words(size).ctypes.data
        return link

    def _slots(self) -> Words:
        """The slots for messages of all ranks; each rank's first ones have a buffer."""
        slots = self._words(self.comm.size * SLOTS * SLOT_SIZE)
        room = -(-self.eager // 64) * 64
        buffers = self._words(self.comm.size * BUFFERS * room).ctypes.data
        for rank in range(self.comm.size):
            for number in range(BUFFERS):
                place = SLOT_SIZE * (SLOTS * rank + number) + SLOT.buffer
                slots[place >> 3] = buffers + room * (BUFFERS * rank + number)
        return slots

    def _fill(self) -> None:
        letters = INBOX.letters + RING * MESSAGE.size
        inboxes = [self._words(letters).ctypes.data for _ in self.locals]
        for field, value in (
            (OWNER.rank, self.comm.rank),
            (OWNER.local, self.node.rank),
            (OWNER.done, self.done_counts.ctypes.data),
            (OWNER.seen, self.seen_counts.ctypes.data),
            (OWNER.links, self._table([link.ctypes.data for link in self.links])),
            (OWNER.inboxes, self._table(inboxes)),
            (OWNER.slots, self._slots().ctypes.data),
            (OWNER.beats, self.beats.ctypes.data),
        ):
            self.record[field >> 3] = value

    def knowledge(self, helper: bool) -> Memory:
        """A ``ME`` record for a thread of this rank; valid as long as this object."""
        size, me = self.comm.size, Memory(ME.size)
        index = np.zeros(size, np.int64)
        index[self.remotes] = range(len(self.remotes))
        index[self.locals] = [-1 - number for number in range(len(self.locals))]
        owners = np.array(self.addresses, np.int64)
        polls = np.array([d for one in self.descriptors for d in one], np.int64) | _POLL_IN << 32
        bounce = np.zeros(STAGE // 8, np.int64)
        self._knowledge.append((me, index, owners, polls, bounce))
        for field, value in (
            (ME.number, self.node.rank),
            (ME.locals, len(self.locals)),
            (ME.remotes, len(self.remotes)),
            (ME.ranks, size),
            (ME.owner, self.record.ctypes.data),
            (ME.owners, owners.ctypes.data),
            (ME.polls, polls.ctypes.data),
            (ME.index, index.ctypes.data),
            (ME.recv, address_of("recv")),
            (ME.send, address_of("send")),
            (ME.poll, address_of("poll")),
            (ME.errno, address_of("__errno_location")),
            (ME.yield_, address_of("sched_yield")),
            (ME.clock_gettime, address_of("clock_gettime")),
            (ME.helper, int(helper)),
            (ME.bounce, bounce.ctypes.data),
        ):
            me.put(me.address + field, value)
        return me

    def is_crowded(self, threads: int) -> bool:
        """True if the ranks of this machine, with this number of threads each, have too few
        cores."""
        return is_crowded(threads, self.masks)

    def cores(self) -> tuple[set[int], int]:
        """Cores for this rank, and a separate one for its progress thread.

        Raises :class:`ConfigError` if the ranks with the same cores have fewer than two each.
        """
        count = self.masks.count(self.mask)
        if 2 * count > len(self.mask):
            raise ConfigError(
                f"--thread-place dedicated: {count} ranks have {len(self.mask)} cores; expected "
                "two cores for each rank; use --thread-place shared, or fewer ranks",
                code="intranode.option",
            )
        return set(self.mask[:count]), self.mask[count + self._before]

    def deaths(self) -> str:
        """The dead ranks as text; processes are checked only now and then.

        The connections of a dead rank on this node are closed, so that its peers notice.
        """
        distant = [
            f"rank {int(link[LINK.peer >> 3])} (its connection is closed)"
            for link in self.links
            if link[LINK.lost >> 3]
        ]
        near = self._processes.deaths()
        for number in near:
            sockets.shut_down(self.descriptors[number])
        return ", ".join([*distant, *near.values()])

    def close(self) -> None:
        """Free connections and communicators; collective."""
        self.comm.Barrier()
        for number, one in enumerate(self.descriptors):
            for descriptor in one if number != self.node.rank else ():
                os.close(descriptor)
        for connection in self.connections:
            connection.close()
        self.arena.close()
