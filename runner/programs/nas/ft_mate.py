"""FT on MATE: a transposition is a message to every other rank, one for each pair and piece."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check
from runner.programs.nas.common.on_mate import OnMate, Place
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.steps import Call, Message, Steps
from runner.programs.nas.ft import FT, Problem
from runner.programs.nas.ft_layout import Field, Layout, Shape, Turner, transposition
from runner.runtimes.core.kernels import load, scalars


def build(comm: Any, options: Options) -> OnMate[FTRank]:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a power of two or too many."""
    return OnMate(
        comm, options, lambda place: FTRank(place, options), lambda ranks: ranks[0].checks()
    )


@dataclass(frozen=True)
class Turn:
    """A transposition across slabs as steps; in the sequences of FT it stands for a call."""

    place: Place
    source: Field
    target: Field
    shape: Shape

    def __call__(self) -> None:
        raise AssertionError("a transposition is written down, not made")

    def write(self, steps: Steps) -> None:
        """Transpose locally, exchange a part with every rank, and put the parts in their places."""
        ranks, me, (n1, n2, n3) = self.place.size, self.place.rank, self.shape
        steps.call(transposition(self.source, self.target, self.shape))
        outgoing, incoming = self.target.reshape(ranks, -1), self.source.reshape(ranks, -1)
        steps.copy(outgoing[me], incoming[me])
        # Each rank begins with the next one, so that not all send to the same.
        others = [(me + n) % ranks for n in range(1, ranks)]
        steps.exchange(
            [Message(rank, outgoing[rank]) for rank in others],
            [Message(rank, incoming[rank]) for rank in reversed(others)],
        )
        pieces = self.source.reshape(ranks, n1 // ranks * n2, n3).swapaxes(0, 1)
        steps.copy(pieces, self.target.reshape(n1 // ranks * n2, ranks, n3))


class TurnSteps(Turner):
    """The transpositions of slabs as steps."""

    def __init__(self, place: Place, layout: Layout) -> None:
        self._place, self._layout = place, layout

    def _across(self, source: Field, target: Field, shape: Shape) -> Callable[[], None]:
        return Turn(self._place, source, target, shape)


class FTRank(FT):
    """One rank: see :class:`runner.programs.nas.common.on_mate.KernelRank`."""

    def __init__(self, place: Place, options: Options) -> None:
        problem: Problem = options.problem
        planes = problem.points[2]
        log2_ranks("ft", place.size)
        if place.size > planes:
            raise AppUsageError(
                f"nas ft on MATE cuts its {planes} planes into slabs, not into {place.size} parts: "
                "use fewer ranks a process, or a larger class",
                code="app_option.ranks",
            )
        self._place = place
        super().__init__(place, problem, (1, place.size))
        self._counter = scalars([0])
        self._others = np.zeros((place.size - 1, 1), dtype=complex)
        self._steps = Steps(options.split)
        self._write_steps()
        self.program = self._steps.finish()

    def _turner(self) -> TurnSteps:
        return TurnSteps(self._place, self._layout)

    def start(self) -> None:
        self._counter[0] = 0

    def begin(self) -> None:
        """Fill the start values, which the timed part does as in the original."""
        self._counter[0] = 0
        self._fill_start_values()

    def _write_steps(self) -> None:
        bind = load("runner.programs.nas.ft_mate_kernels").bind
        part, sums = (field.view(np.float64) for field in (self._part, self._sums))
        places = self._samples.astype(np.uint64)
        sizes = scalars([len(places), len(self._u2)])
        factor = np.array([1.0 / math.prod(self._problem.points)])
        sum_samples = bind("sum_samples", self._u2.view(np.float64), places, part, factor, sizes)
        keep_sum = bind("keep_sum", part, sums, self._counter)
        self._write(self._forward)
        with self._steps.repeated(len(self._problem.sums)):
            self._steps.call(self._evolve)
            self._write(self._inverse)
            self._steps.call(sum_samples)
            self._write_reduction()
            self._steps.call(keep_sum)

    def _write(self, sequence: list[Call]) -> None:
        for call in sequence:
            if isinstance(call, Turn):
                call.write(self._steps)
            else:
                self._steps.call(call)

    def _write_reduction(self) -> None:
        """Add up the parts of a checksum on rank 0."""
        steps, part = self._steps, self._part.view(np.float64)
        if self._place.rank:
            steps.exchange([Message(0, part)], [])
            return
        ranks = range(1, self._place.size)
        steps.exchange([], [Message(rank, self._others[rank - 1]) for rank in ranks])
        for rank in ranks:
            steps.add(part, self._others[rank - 1].view(np.float64))

    def checks(self) -> list[Check]:
        assert int(self._counter[0]) == len(self._sums), "a checksum for each iteration"
        return super().checks()
