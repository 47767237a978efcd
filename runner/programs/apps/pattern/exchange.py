"""Nonblocking exchanges between neighbours of a grid, and between random pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.common.grid import coordinates, rank_at
from runner.programs.apps.pattern.options import WORD, Options
from runner.programs.apps.pattern.work import Message, Work, share

ROUNDS = 64
"""Number of different rounds of the irregular pattern; they are repeated."""
SPREAD = 4
"""The sizes of the irregular pattern go from 1/4 to 4 times the given size."""


class Halo:
    """All ranks exchange with both neighbours on each axis of a periodic grid.

    As in many programs, an axis with one process is not special: the neighbour is the rank itself.
    The requests are persistent: three calls of MPI in a step.
    """

    def __init__(self, comm: Any, options: Options, work: Work, axes: int) -> None:
        from mpi4py import MPI

        self._work, self._calls = work, share(options, comm.rank, comm.size)
        self._start, self._wait = MPI.Prequest.Startall, MPI.Prequest.Waitall
        grid = tuple(MPI.Compute_dims(comm.size, axes))
        position = coordinates(comm.rank, grid)
        self._requests, self._outgoing, self._incoming = [], [], []
        for axis in range(axes):
            for side in (0, 1):
                place = list(position)
                place[axis] = (position[axis] + 2 * side - 1) % grid[axis]
                partner = rank_at(tuple(place), grid)
                # The neighbour sends it from its opposite side.
                out, back = 2 * axis + side, 2 * axis + 1 - side
                outgoing = Message(options.size, _key(comm.rank, out), is_outgoing=True)
                incoming = Message(options.size, _key(partner, back), is_outgoing=False)
                self._requests.append(comm.Recv_init(incoming.buffer, partner, back))
                self._requests.append(comm.Send_init(outgoing.buffer, partner, out))
                self._outgoing.append(outgoing)
                self._incoming.append(incoming)

    def run(self, first: int, end: int) -> None:
        requests, start, wait, work = self._requests, self._start, self._wait, self._work
        for step in range(first, end):
            for message in self._outgoing:
                message.stamp(step)
            start(requests)
            wait(requests)
            for message in self._incoming:
                message.check(step)
            work.do(self._calls)

    def wrong(self) -> str:
        return "".join({message.wrong() for message in self._incoming})


def _key(rank: int, direction: int) -> int:
    return rank * 8 + direction


class Irregular:
    """In each step the ranks form random pairs; a pair exchanges messages of a random size.

    All ranks draw the same plan from the seed. If their number is odd, one pauses.
    """

    def __init__(self, comm: Any, options: Options, work: Work) -> None:
        from mpi4py import MPI

        self._work, self._calls = work, share(options, comm.rank, comm.size)
        self._start, self._wait = MPI.Prequest.Startall, MPI.Prequest.Waitall
        # One step comes before the timed ones; a short run does not get through all rounds.
        rounds = plan(options, comm.size)[: options.steps + 1]
        mine = [(pairs.get(comm.rank), size) for pairs, size in rounds]
        self._outgoing = Message(max(size for _, size in mine), comm.rank, is_outgoing=True)
        self._incoming = {
            partner: Message(max(s for p, s in mine if p == partner), partner, is_outgoing=False)
            for partner, _ in mine
            if partner is not None
        }
        self._rounds: list[tuple[list[Any], Message] | None] = []
        for partner, size in mine:
            if partner is None:
                self._rounds.append(None)
                continue
            incoming = self._incoming[partner]
            back = comm.Recv_init(incoming.part(size), partner)
            out = comm.Send_init(self._outgoing.part(size), partner)
            self._rounds.append(([back, out], incoming))

    def run(self, first: int, end: int) -> None:
        for step in range(first, end):
            entry = self._rounds[step % ROUNDS]
            if entry is not None:
                requests, incoming = entry
                self._outgoing.stamp(step)
                self._start(requests)
                self._wait(requests)
                incoming.check(step)
            self._work.do(self._calls)

    def wrong(self) -> str:
        return "".join({message.wrong() for message in self._incoming.values()})


def plan(options: Options, ranks: int) -> list[tuple[dict[int, int], int]]:
    """The rounds: the partner of each rank, and the bytes that each of the two sends.

    Sizes are log-uniform, whole words, and at least one.
    """
    draw = np.random.default_rng(options.seed)
    rounds = []
    for _ in range(ROUNDS):
        order = draw.permutation(ranks).tolist()
        pairs = dict(zip(order[0::2], order[1::2], strict=False))
        size = options.size * SPREAD ** draw.uniform(-1, 1)
        rounds.append((pairs | {b: a for a, b in pairs.items()}, max(int(size) // WORD, 1) * WORD))
    return rounds
