"""The ranks of a node: their shared memory, their seats in it, and detection of deaths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.cpus import memory_domain
from runner.runtimes.core.arena import Arena
from runner.runtimes.core.machine_code import address_of
from runner.runtimes.core.memory import Memory
from runner.runtimes.intranode.cab_records import BOARD, BOUNCE, CHANNEL_SIZE, ME, SEAT
from runner.runtimes.intranode.config import STRATEGIES, Config
from runner.runtimes.intranode.processes import Processes
from runner.runtimes.intranode.switches import spins
from runner.runtimes.workers.affinity import CpuSet, cpu_mask, is_crowded


class Node:
    """The ranks of a node; created by all ranks of ``comm``.

    ``arena``: their memory (a new one if it is None).  Raises
    :class:`runner.runtimes.core.arena.ArenaError` in all ranks if one cannot share memory.
    """

    def __init__(self, comm: Any, config: Config, arena: Arena | None = None) -> None:
        self.arena = arena or Arena(comm)
        self.comm = self.arena.node
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        self._owns = arena is None
        self._seat = self._words(SEAT.size)
        self._channels = self._words(self.size * CHANNEL_SIZE)
        self._board = self._words(BOARD.size)
        self._bounce = np.zeros(BOUNCE + 64, np.uint8)
        self._me = Memory(ME.size)
        self.me = self._me.address
        """The address of this rank's record."""
        mask = cpu_mask()
        everyone = self.comm.allgather((self._seat.ctypes.data, mask, memory_domain(mask)))
        board = self.comm.bcast(self._board.ctypes.data)
        self._processes = Processes(self.comm, f"rank {self.rank}")
        self._addresses = np.array([seat for seat, _, _ in everyone], np.int64)
        self._masks: list[CpuSet] = [mask for _, mask, _ in everyone]
        self._domains: list[int] = [domain for _, _, domain in everyone]
        self._seat[SEAT.active >> 3] = 1
        self._seat[SEAT.channels >> 3] = self._channels.ctypes.data
        bounce = self._bounce.ctypes.data
        for field, value in (
            (ME.rank, self.rank),
            (ME.ranks, self.size),
            (ME.seat, self._seat.ctypes.data),
            (ME.board, board),
            (ME.seats, self._addresses.ctypes.data),
            (ME.yield_, address_of("sched_yield")),
            (ME.bounce, bounce + -bounce % 64),
        ):
            self.put(field, value)
        self.apply(config)
        # Nobody steals before all seats are complete.
        self.comm.Barrier()

    def _words(self, size: int) -> NDArray[np.int64]:
        words: NDArray[np.int64] = self.arena.zeros(size >> 3, np.int64)
        return words

    def put(self, field: int, value: int) -> None:
        """Set a word of this rank's record."""
        self._me.put(self.me + field, value)

    def get(self, field: int) -> int:
        """A word of this rank's record."""
        return self._me.get(self.me + field)

    def seat(self, rank: int) -> int:
        """The address of a rank's seat."""
        return int(self._addresses[rank])

    def apply(self, config: Config) -> None:
        """Use a configuration from now on; all ranks must assume the same domains."""
        domains = self._domains
        if config.domains:
            domains = [n * config.domains // self.size for n in range(self.size)]
        self._seat[SEAT.domain >> 3] = domains[self.rank]
        others = [n for n in range(self.size) if n != self.rank]
        near = [self.seat(n) for n in others if domains[n] == domains[self.rank]]
        far = [self.seat(n) for n in others if domains[n] != domains[self.rank]]
        self._near, self._far = np.array(near, np.int64), np.array(far, np.int64)
        for field, value in (
            (ME.near, self._near.ctypes.data),
            (ME.nears, len(near)),
            (ME.far, self._far.ctypes.data),
            (ME.fars, len(far)),
            (ME.last, 0),
            (ME.steals, config.steal),
            (ME.strategy, STRATEGIES.index(config.strategy)),
            (ME.saturate, config.saturation),
            (ME.stealers, config.stealers),
            (ME.flags, config.strategy == "throughput" and bool(far)),
            (ME.threshold, config.threshold if config.steal else 1 << 62),
            (ME.low, config.medium_from),
            (ME.high, config.large_from),
            (ME.small, config.chunk_small),
            (ME.medium, config.chunk_medium),
            (ME.large, config.chunk_large),
            (ME.descending, config.access == "lo-to-hi"),
            (ME.spins, spins(config, is_crowded(1, self._masks))),
            (ME.dice, (config.seed << 20) + 7919 * (self.rank + 1)),
        ):
            self.put(field, int(value))

    def deaths(self) -> str:
        """The dead ranks of this node as text; it checks only now and then."""
        return ", ".join(self._processes.deaths().values())

    def close(self) -> None:
        """Free the communicator; collective."""
        if self._owns:
            self.arena.close()
