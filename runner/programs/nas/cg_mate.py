"""CG on MATE: the sums of a row of ranks and the transpose as messages between ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.nas.cg import CG, INNER, Vector
from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check
from runner.programs.nas.common.on_mate import OnMate, Place
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.steps import Message, Steps
from runner.runtimes.core.kernels import load, scalars


def build(comm: Any, options: Options) -> OnMate[CGRank]:
    """The kernel; raises :class:`AppUsageError` if the number of ranks is not a power of two."""
    return OnMate(
        comm, options, lambda place: CGRank(place, options), lambda ranks: ranks[0].checks()
    )


class CGRank(CG):
    """One rank: see :class:`runner.programs.nas.common.on_mate.KernelRank`."""

    def __init__(self, place: Place, options: Options) -> None:
        super().__init__(place, options.problem, log2_ranks("cg", place.size))
        self._rank = place.rank
        self._numbers = np.zeros(2)
        """The square of the residual's length, and x . z."""
        self._steps = Steps(options.split)
        self._write_steps()
        self.program = self._steps.finish()

    def start(self) -> None:
        self._x.fill(1.0)

    def begin(self) -> None:
        """Nothing is done in Python."""

    def _write_steps(self) -> None:
        call, bind = self._steps.call, load("runner.programs.nas.cg_mate_kernels").bind
        sums, numbers, length = self._sum, self._numbers, scalars([self._columns])
        first_length = bind("first_length", sums, numbers)
        step_length = bind("step_length", sums, numbers)
        new_direction = bind("new_direction", sums, numbers, self._factor)
        with self._steps.repeated(self._problem.iterations):
            call(bind("begin", self._x, self._z, self._r, self._p, length))
            call(self._dot_rr)
            self._write_sum(1)
            call(first_length)
            for _ in range(INNER):
                call(self._multiply_p)
                self._write_sum_and_transpose(self._q)
                call(self._dot_pq)
                self._write_sum(1)
                call(step_length)
                call(self._advance)
                self._write_sum(1)
                call(new_direction)
                call(self._direct)
            call(self._multiply_z)
            self._write_sum_and_transpose(self._r)
            call(self._distance)
            self._write_sum(1)
            call(self._two_dots)
            self._write_sum(2)
            call(bind("normalise", self._x, self._z, sums, numbers, length))

    def _write_sum(self, count: int) -> None:
        """Sum one or two numbers over the row of ranks."""
        values, partial = self._sum[:count], self._partial[:count]
        for partner in self._block.partners:
            self._steps.exchange([Message(partner, values)], [Message(partner, partial)])
            self._steps.add(values, partial)

    def _write_sum_and_transpose(self, target: Vector) -> None:
        block, w, steps = self._block, self._w, self._steps
        for step in block.steps:
            part = slice(*step.receive)
            send = Message(step.partner, w[slice(*step.send)])
            steps.exchange([send], [Message(step.partner, self._incoming[part])])
            steps.add(w[part], self._incoming[part])
        piece = w[slice(*block.piece)]
        if block.transpose == self._rank:
            steps.copy(piece, target)
        else:
            other = block.transpose
            steps.exchange([Message(other, piece)], [Message(other, target)])

    def checks(self) -> list[Check]:
        self._zeta = self._problem.shift + 1.0 / float(self._numbers[1])
        return super().checks()
