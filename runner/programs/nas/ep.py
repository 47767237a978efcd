"""EP: pairs of Gaussian deviates, counted by size; the only messages are three sums at the end.

Source: NAS-95-020, section 2.2.2 (2.3 for the numbers); NPB 3.4 sums absolute values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.common.kernel import Check, Facts, Kernel, Stopwatch
from runner.programs.nas.common.random import MULTIPLIER, jump
from runner.runtimes.core.kernels import load, scalars

SEED = 271828183
"""EP has its own seed."""
BATCH = 1 << 16
"""Pairs of random numbers in a batch; batches are independent."""
ANNULI = 10
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Problem:
    """One class: 2^log2_pairs pairs; the sums of |X| and |Y| and the number of accepted pairs."""

    log2_pairs: int
    sum_x: float
    sum_y: float
    pairs: int


PROBLEMS = {
    "S": Problem(24, 1.051299420395306e7, 1.051517131857535e7, 13176389),
    "W": Problem(25, 2.102505525182392e7, 2.103162209578822e7, 26354769),
    "A": Problem(28, 1.682235632304711e8, 1.682195123368299e8, 210832767),
    "B": Problem(30, 6.728927543423024e8, 6.728951822504275e8, 843345606),
}


def build(comm: Any, problem: Problem) -> EP:
    """The kernel; raises :class:`AppUsageError` if there are more ranks than batches."""
    batches = (1 << problem.log2_pairs) // BATCH
    if comm.size > batches:
        raise AppUsageError(
            f"nas ep has {batches} batches in this class, too few for {comm.size} ranks: "
            f"start it with -n {batches} or less, or choose a larger class",
            code="app_option.ranks",
        )
    return EP(comm, problem, batches)


class EP(Kernel):
    """See :class:`runner.programs.nas.common.kernel.Kernel`."""

    def __init__(self, comm: Any, problem: Problem, batches: int) -> None:
        self._comm, self._problem = comm, problem
        self.mpi = Stopwatch()
        numbers = 2.0 ** (problem.log2_pairs + 1)
        self.facts = Facts(f"{numbers:.0f}", 0, numbers, "Random numbers generated")
        # The first ``larger`` ranks compute one more batch.
        small, larger = divmod(batches, comm.size)
        first = comm.rank * small + min(comm.rank, larger)
        self._batches = range(first, first + small + (comm.rank < larger))
        self._state = scalars([SEED, MULTIPLIER, BATCH])
        self._local = np.zeros(2 + ANNULI)
        self._total = np.zeros(2 + ANNULI)
        kernels = load("runner.programs.nas.ep_kernels")
        self._tally = kernels.bind("tally_batch", self._local, self._state)

    def prepare(self) -> None:
        self._state[0] = SEED
        self._tally()

    def solve(self) -> None:
        self._local.fill(0.0)
        for batch in self._batches:
            self._state[0] = jump(SEED, 2 * BATCH * batch)
            self._tally()
        with self.mpi:
            for part in (slice(0, 1), slice(1, 2), slice(2, None)):
                self._comm.Allreduce(self._local[part], self._total[part])

    def checks(self) -> list[Check]:
        problem, total = self._problem, self._total
        return [
            Check("Sum of |X|", float(total[0]), problem.sum_x, TOLERANCE),
            Check("Sum of |Y|", float(total[1]), problem.sum_y, TOLERANCE),
            Check("Number of pairs", float(total[2:].sum()), problem.pairs, TOLERANCE),
        ]
