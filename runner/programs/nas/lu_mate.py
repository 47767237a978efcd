"""LU on MATE: both sweeps as a wave through the ranks, which wait for each other by messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.nas.cfd_exact import start_values
from runner.programs.nas.common.kernel import Check, Stopwatch
from runner.programs.nas.common.on_mate import OnMate, Place
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.steps import Call, Message, Steps
from runner.programs.nas.lu import LU, Problem, checks_of, root_mean_square
from runner.programs.nas.lu_domain import (
    FROM_EAST,
    FROM_NORTH,
    FROM_SOUTH,
    FROM_WEST,
    GHOSTS,
    Domain,
    Field,
    Messages,
    domain,
)

TO_ROOT = 0
"""The tag of sums; those of the sweeps name a side."""


def build(comm: Any, options: Options) -> OnMate[LURank]:
    """The kernel; raises :class:`AppUsageError` if the number of ranks does not fit the class."""
    problem: Problem = options.problem

    def check(ranks: Sequence[LURank]) -> list[Check]:
        return checks_of(comm, problem, ranks, ranks[0].residual)

    return OnMate(comm, options, lambda place: LURank(place, options), check)


@dataclass(frozen=True)
class Side:
    """A side of a column in a sweep: the rank behind it, and the layer of a plane there.

    ``axis`` of the plane (0: y, 1: x) and ``index`` along it.
    """

    rank: int
    axis: int
    index: int
    tag: int


def _sides(*sides: tuple[int | None, int, int, int]) -> list[Side]:
    return [Side(rank, *more) for rank, *more in sides if rank is not None]


class MessageSteps(Messages):
    """All messages of one rank as steps; ``planes`` of a sweep share a message."""

    def __init__(self, own: Domain, planes: int, steps: Steps) -> None:
        super().__init__(None, own, Stopwatch())
        self._steps, self._count = steps, planes

    def write_lower(self, field: Field, calls: dict[int, Call]) -> None:
        """The lower sweep; ``calls`` compute a plane each."""
        own, first, last = self._domain, GHOSTS - 1, -GHOSTS - 1
        arriving = _sides((own.north, 1, first, FROM_NORTH), (own.west, 0, first, FROM_WEST))
        leaving = _sides((own.south, 1, last, FROM_NORTH), (own.east, 0, last, FROM_WEST))
        self._write_sweep(field, sorted(calls), calls, arriving, leaving)

    def write_upper(self, field: Field, calls: dict[int, Call]) -> None:
        """The upper sweep."""
        own, first, last = self._domain, GHOSTS, -GHOSTS
        arriving = _sides((own.south, 1, last, FROM_SOUTH), (own.east, 0, last, FROM_EAST))
        leaving = _sides((own.north, 1, first, FROM_SOUTH), (own.west, 0, first, FROM_EAST))
        self._write_sweep(field, sorted(calls, reverse=True), calls, arriving, leaving)

    def _write_sweep(
        self, field: Field, planes: Sequence[int], calls: dict[int, Call],
        arriving: Sequence[Side], leaving: Sequence[Side],
    ) -> None:  # fmt: skip
        steps, count = self._steps, self._count
        chunks = [planes[n : n + count] for n in range(0, len(planes), count)]
        buffers = {
            side: np.zeros(self._layers(field, chunks[0], side).shape)
            for side in (*arriving, *leaving)
        }

        def messages(sides: Sequence[Side], chunk: Sequence[int]) -> list[Message]:
            return [Message(s.rank, buffers[s][: len(chunk)], s.tag) for s in sides]

        steps.exchange([], messages(arriving, chunks[0]))
        for chunk, following in zip(chunks, [*chunks[1:], []], strict=True):
            for side in arriving:
                steps.copy(buffers[side][: len(chunk)], self._layers(field, chunk, side))
            for plane in chunk:
                steps.call(calls[plane])
            for side in leaving:
                steps.copy(self._layers(field, chunk, side), buffers[side][: len(chunk)])
            receives = messages(arriving, following) if following else []
            steps.exchange(messages(leaving, chunk), receives)

    def _layers(self, field: Field, planes: Sequence[int], side: Side) -> Field:
        """The layers of consecutive planes that a message has."""
        some = field[min(planes) : max(planes) + 1]
        return (
            some[:, side.index, self._columns]
            if side.axis == 0
            else (some[:, self._rows, side.index])
        )

    def write_exchange_x(self, field: Field) -> None:
        """Exchange two layers of ghosts along x."""
        inner = field.transpose(2, 0, 1, 3)[:, :, GHOSTS:-GHOSTS]
        own = self._domain
        self._write_exchange(inner, (own.north, FROM_NORTH), (own.south, FROM_SOUTH))

    def write_exchange_y(self, field: Field) -> None:
        """Exchange two layers of ghosts along y."""
        inner = field.transpose(1, 0, 2, 3)[:, :, GHOSTS:-GHOSTS]
        own = self._domain
        self._write_exchange(inner, (own.west, FROM_WEST), (own.east, FROM_EAST))

    def _write_exchange(
        self, inner: Field, low: tuple[int | None, int], high: tuple[int | None, int]
    ) -> None:
        """Exchange with the ranks below and above; a tag names the side that a message is from."""
        steps, sends, receives, ghosts = self._steps, [], [], []
        for (rank, tag), (_, other_tag), own, ghost in (
            (low, high, inner[2:4], inner[:2]),
            (high, low, inner[-4:-2], inner[-2:]),
        ):
            if rank is not None:
                outgoing, incoming = np.zeros(own.shape), np.zeros(own.shape)
                steps.copy(own, outgoing)
                # The other rank sees this one on the opposite side.
                sends.append(Message(rank, outgoing, other_tag))
                receives.append(Message(rank, incoming, tag))
                ghosts.append((incoming, ghost))
        steps.exchange(sends, receives)
        for incoming, ghost in ghosts:
            steps.copy(incoming, ghost)


class LURank(LU):
    """One rank: see :class:`runner.programs.nas.common.on_mate.KernelRank`."""

    def __init__(self, place: Place, options: Options) -> None:
        problem: Problem = options.problem
        super().__init__(place, problem, domain(problem.size, place.size, place.rank))
        self._place = place
        self._change, self._last = np.zeros(5), np.zeros(5)
        self._others = np.zeros((place.size - 1, 5))
        self._steps = Steps(options.split)
        self._recorded = MessageSteps(self._domain, options.planes, self._steps)
        self._write_steps()
        self.program = self._steps.finish()

    def start(self) -> None:
        self._u[...] = start_values(*self._domain.coordinates())
        self._rest.fill(0.0)

    def begin(self) -> None:
        """Nothing is done in Python."""

    @property
    def residual(self) -> Field:
        """The norms of the residual, on rank 0."""
        return root_mean_square(self._last, self._problem.size)

    def _write_steps(self) -> None:
        steps = self._steps
        planes = {}
        for plane in range(1, self._problem.size - 1):
            state = self._plane.copy()
            state[0] = plane
            planes[plane] = self._sweeps(state)
        lower = {plane: calls[0] for plane, calls in planes.items()}
        upper = {plane: calls[1] for plane, calls in planes.items()}
        self._write_right_hand_side()
        steps.start_clock()
        last = self._problem.iterations - 1
        with steps.repeated(last):
            self._write_update(lower, upper)
            self._write_right_hand_side()
        self._write_update(lower, upper)
        # The norm of the change; the original computes it at the last step, too.
        self._write_squares(self._change)
        self._write_right_hand_side()
        self._write_squares(self._last)

    def _write_update(self, lower: dict[int, Call], upper: dict[int, Call]) -> None:
        self._steps.call(self._scale)
        self._recorded.write_lower(self._rest, lower)
        self._recorded.write_upper(self._rest, upper)
        self._steps.call(self._update)

    def _write_right_hand_side(self) -> None:
        steps = self._steps
        steps.copy(self._forcing, self._rest)
        self._recorded.write_exchange_x(self._u)
        steps.call(self._fluxes[0])
        self._recorded.write_exchange_y(self._u)
        steps.call(self._fluxes[1])
        steps.call(self._fluxes[2])

    def _write_squares(self, total: Field) -> None:
        """Add up the squares of all ranks on rank 0."""
        steps = self._steps
        steps.call(self._squares)
        if self._place.rank:
            steps.exchange([Message(0, self._local, TO_ROOT)], [])
            return
        steps.copy(self._local, total)
        ranks = range(1, self._place.size)
        steps.exchange([], [Message(rank, self._others[rank - 1], TO_ROOT) for rank in ranks])
        for rank in ranks:
            steps.add(total, self._others[rank - 1])
