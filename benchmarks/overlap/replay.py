"""When the events of a trace would happen on other cores and another network."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Trace = Sequence[Sequence[Sequence[Any]]]
"""The events of each rank, as :mod:`benchmarks.overlap.traced` writes them."""


@dataclass(frozen=True)
class Network:
    """A network: seconds of a message of no length one way, bytes per second of a node's link.

    A message above ``eager`` bytes crosses it three times: its announcement, the answer, the data.
    Messages within a node take no time.
    """

    latency_s: float
    bytes_per_s: float
    eager: int = 65536

    def crossing_s(self, size: int) -> float:
        """Seconds from the call of the sender to the arrival, without the time on the link."""
        return self.latency_s * (1 if size <= self.eager else 3)


class _Rank:
    """A rank during a replay: its next event, and the time up to which it is simulated."""

    def __init__(self, events: Sequence[Sequence[Any]], node: int) -> None:
        self.events, self.node = events, node
        self.next = 0
        self.time = 0.0


class Replay:
    """A trace on nodes of some cores each; the ranks are divided over the nodes in order.

    ``cores`` None: each rank has a core of its own, and messages do not wait for the link, so that
    only the dependences are left. A core runs a rank until it waits, then the rank that has been
    ready for longest. Nothing but computation and messages takes time.
    """

    def __init__(
        self, trace: Trace, nodes: int, network: Network, cores: int | None = None
    ) -> None:
        self._network, self._cores = network, cores
        self._ranks = [_Rank(events, n * nodes // len(trace)) for n, events in enumerate(trace)]
        self._link_free = [0.0] * nodes
        self._idle = [len(trace) if cores is None else cores] * nodes
        self._ready: list[deque[int]] = [deque() for _ in range(nodes)]
        self._running: list[tuple[float, int]] = []
        self._arrivals: dict[tuple[int, int, int, int], float] = {}
        self._waiting: dict[tuple[int, int, int, int], int] = {}
        self._sent: dict[tuple[int, int, int], int] = {}
        self.wire_s = [0.0] * nodes
        """Seconds for which the link of each node sends."""

    def seconds(self) -> float:
        """The time at which the last rank ends. Raises ValueError if ranks wait for ever."""
        for number in range(len(self._ranks)):
            self._wake(number, 0.0)
        end = 0.0
        while self._running:
            time, number = heapq.heappop(self._running)
            if number < 0:  # A rank becomes ready.
                self._wake(-1 - number, time)
                continue
            rank = self._ranks[number]
            if rank.next == len(rank.events):
                end = max(end, time)
                self._leave(rank)
            elif self._happens(number, rank, rank.events[rank.next]):
                rank.next += 1
                heapq.heappush(self._running, (rank.time, number))
            else:
                self._leave(rank)
        if self._waiting:
            raise ValueError(f"ranks wait for messages that nobody sends: {[*self._waiting][:3]}")
        return end

    def _wake(self, number: int, time: float) -> None:
        """A rank is ready: it gets an idle core, or waits for one."""
        rank = self._ranks[number]
        rank.time = time
        if self._idle[rank.node]:
            self._idle[rank.node] -= 1
            heapq.heappush(self._running, (time, number))
        else:
            self._ready[rank.node].append(number)

    def _leave(self, rank: _Rank) -> None:
        """A rank gives its core to the next one."""
        if not self._ready[rank.node]:
            self._idle[rank.node] += 1
            return
        number = self._ready[rank.node].popleft()
        self._ranks[number].time = rank.time
        heapq.heappush(self._running, (rank.time, number))

    def _happens(self, number: int, rank: _Rank, event: Sequence[Any]) -> bool:
        """Simulate an event; False if the rank has to wait for it."""
        if event[0] == "compute":
            rank.time += event[1]
        elif event[0] == "send":
            self._send(number, rank, *event[1:])
        else:
            source, tag, count = event[1:]
            key = (source, number, tag, count)
            arrival = self._arrivals.pop(key, None)
            if arrival is None:
                self._waiting[key] = number
                return False
            if arrival > rank.time:
                rank.next += 1
                heapq.heappush(self._running, (arrival, -1 - number))
                return False
        return True

    def _send(self, number: int, rank: _Rank, target: int, tag: int, size: int) -> None:
        count = self._sent.get((number, target, tag), 0)
        self._sent[number, target, tag] = count + 1
        arrival = rank.time
        if self._ranks[target].node != rank.node:
            wire_s = size / self._network.bytes_per_s
            begin = rank.time
            if self._cores is not None:
                begin = max(begin, self._link_free[rank.node])
                self._link_free[rank.node] = begin + wire_s
            self.wire_s[rank.node] += wire_s
            arrival = begin + wire_s + self._network.crossing_s(size)
        key = (number, target, tag, count)
        if key in self._waiting:
            del self._waiting[key]
            self._ranks[target].next += 1
            heapq.heappush(self._running, (arrival, -1 - target))
        else:
            self._arrivals[key] = arrival


@dataclass(frozen=True)
class Limit:
    """Lower bounds of the time with ``factor`` ranks for each core, in seconds.

    ``work_s``: the computation, shared equally by all cores of the busiest node. ``chain_s``: the
    longest chain of dependences of computation and messages. ``wire_s``: the busiest link.
    ``forecast_s`` is no bound: a replay in which a core takes the next ready rank.
    """

    factor: int
    work_s: float
    chain_s: float
    wire_s: float
    forecast_s: float

    @property
    def least_s(self) -> float:
        return self.with_line(0.0)

    def with_line(self, line_s: float) -> float:
        """The bound where a delay line takes so many CPU seconds from the busiest node's core."""
        return max(self.work_s + line_s, self.chain_s, self.wire_s)


def flat_seconds(trace: Trace, nodes: int, network: Network) -> float:
    """The time of the flat program: a core for each rank, which waits for its own messages."""
    return Replay(trace, nodes, network, cores=len(trace) // nodes).seconds()


def limit(trace: Trace, factor: int, nodes: int, network: Network) -> Limit:
    """The bounds of a trace of ``factor`` ranks for each core."""
    cores = len(trace) // (factor * nodes)
    chain = Replay(trace, nodes, network)
    chain_s = chain.seconds()
    work_s = [0.0] * nodes
    for number, events in enumerate(trace):
        work_s[number * nodes // len(trace)] += sum(e[1] for e in events if e[0] == "compute")
    forecast_s = Replay(trace, nodes, network, cores=cores).seconds()
    return Limit(factor, max(work_s) / cores, chain_s, max(chain.wire_s), forecast_s)
