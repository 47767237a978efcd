"""Runs the plans of many ranks in one process, in a random order that the plans allow.

The steps are those that compiled code executes; only addresses and MPI are other ones.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.core.words import LINE
from runner.runtimes.intranode.mcoll.plan import Message, Place, Plan
from runner.runtimes.intranode.mcoll.topology import Topology

Write = Callable[[Plan], None]
POISON = 0xA5


class Deadlock(Exception):
    """No rank can go on."""


class Simulation:
    """All ranks of a topology, each with its plan and its arrays.

    ``writes(rank)`` writes the plan of a rank; ``send[rank]`` are bytes; ``combine(a, b)`` is the
    operation on elements of ``dtype``.
    """

    def __init__(
        self,
        topology: Topology,
        objects: int,
        radix: int,
        writes: Callable[[int], Write],
        send: list[np.ndarray],
        received: int,
        dtype: Any = np.uint8,
        combine: Any = np.add,
    ) -> None:
        self.topology, self.dtype, self.combine = topology, np.dtype(dtype), combine
        count = topology.nodes * topology.locals
        self.plans = []
        for rank in range(count):
            plan = Plan(topology.seat(rank, objects, radix), self.dtype.itemsize)
            writes(rank)(plan)
            self.plans.append(plan)
        assert len({plan.size for plan in self.plans}) == 1
        self.work = [np.full(self.plans[0].size, POISON, np.uint8) for _ in topology.ranks]
        self.counters = [[0] * topology.nodes for _ in topology.ranks]
        self.arrived = [0] * topology.nodes
        self.send = send
        self.recv = [np.full(received, POISON, np.uint8) for _ in range(count)]
        self.at, self.target = [0] * count, [0] * count
        self.wires: dict[tuple[int, int], deque[np.ndarray]] = {}
        self.posted: dict[tuple[int, int], deque[tuple[int, Message]]] = {}
        self.left: list[dict[tuple[Message, ...], list[int]]] = [{} for _ in range(count)]
        self.messages = self.bytes = 0

    def run(self, seed: int = 0) -> None:
        """Run all to the end; a rank that can go on is drawn at random."""
        dice = random.Random(seed)
        able = [r for r, plan in enumerate(self.plans) if plan.steps]
        while able:
            order = dice.sample(able, len(able))
            moved = False
            for rank in order:
                for _ in range(dice.choice((1, 1, 2, 1000))):
                    if self.at[rank] == len(self.plans[rank].steps) or not self._step(rank):
                        break
                    moved = True
            if not moved:
                raise Deadlock([self.plans[r].steps[self.at[r]] for r in able])
            able = [r for r in able if self.at[r] < len(self.plans[r].steps)]
        assert not any(self.wires.values()), "messages that nobody received"
        assert not any(self.posted.values())

    def _bytes(self, rank: int, place: Place, size: int) -> np.ndarray:
        node = self.topology.places[rank][0]
        whole = {"send": self.send[rank], "recv": self.recv[rank], "work": self.work[node]}
        found = whole[place.base][place.offset : place.offset + size]
        assert found.size == size, (place, size)
        return found

    def _step(self, rank: int) -> bool:
        step = self.plans[rank].steps[self.at[rank]]
        node = self.topology.places[rank][0]
        ranks = self.topology.locals
        if step.kind == "copy":
            self._bytes(rank, step.to, step.count)[:] = self._bytes(rank, step.a, step.count)
        elif step.kind == "combine":
            size = step.count * self.dtype.itemsize
            a, b = (
                self._bytes(rank, place, size).copy().view(self.dtype) for place in (step.a, step.b)
            )
            self._bytes(rank, step.to, size)[:] = self.combine(a, b).view(np.uint8)
        elif step.kind == "arrive":
            self.arrived[node] += 1
            self.target[rank] = -(-self.arrived[node] // ranks) * ranks
        elif step.kind == "await":
            value = self.counters[node][step.to.offset // LINE]
            if not step.count and self.arrived[node] < self.target[rank]:
                return False
            if step.count and value < step.count:
                return False
        elif step.kind == "signal":
            self.counters[node][step.to.offset // LINE] += 1
        elif step.kind == "clear":
            self.counters[node] = [0] * len(self.counters[node])
        elif step.kind == "start":
            self._start(rank, step.messages)
        elif step.kind == "wait" and self.left[rank][step.messages][0]:
            return False
        self.at[rank] += 1
        return True

    def _start(self, rank: int, messages: tuple[Message, ...]) -> None:
        """Sends are over when they are received, as with large messages."""
        open_ = self.left[rank][messages] = [len(messages)]
        for message in messages:
            assert message.place.base == "work"
            if message.sends:
                assert self.topology.places[message.peer][0] != self.topology.places[rank][0]
                self.messages += 1
                self.bytes += message.size
                pair = (rank, message.peer)
            else:
                pair = (message.peer, rank)
            mine, others = (self.wires, self.posted) if message.sends else (self.posted, self.wires)
            entry = (rank, message, open_)
            waiting: Any = others.setdefault(pair, deque())
            if not waiting:
                queue: Any = mine.setdefault(pair, deque())
                queue.append(entry)
                continue
            other = waiting.popleft()
            sender, receiver = (entry, other) if message.sends else (other, entry)
            assert sender[1].size == receiver[1].size, "sizes differ"
            data = self._bytes(sender[0], sender[1].place, sender[1].size)
            self._bytes(receiver[0], receiver[1].place, receiver[1].size)[:] = data
            sender[2][0] -= 1
            receiver[2][0] -= 1
