"""IS: ranking of integer keys by bucket sort, ten times, with one all-to-all of keys each time.

Source: NAS-95-020, section 2.2.6, with the buckets and verification of NPB 3.4-MPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check, Facts, Kernel, Stopwatch
from runner.programs.nas.common.random import BITS, MULTIPLIER, SEED, jump
from runner.runtimes.core.kernels import load, scalars

ITERATIONS = 10


@dataclass(frozen=True)
class Problem:
    """One class: 2^log2_keys keys below 2^log2_range.

    ``test_places`` are the positions of five keys. ``ranks`` gives the rank that each must have in
    iteration i: rank + sign * (i + lag) for (rank, sign, lag).
    """

    log2_keys: int
    log2_range: int
    log2_buckets: int
    largest_ranks: int
    test_places: tuple[int, ...]
    ranks: tuple[tuple[int, int, int], ...]


def _ranks(values: str, signs: str, lags: str) -> tuple[tuple[int, int, int], ...]:
    words = zip(values.split(), signs, lags.split(), strict=True)
    return tuple((int(v), 1 if s == "+" else -1, int(lag)) for v, s, lag in words)


PROBLEMS = {
    "S": Problem(16, 11, 9, 128, (48427, 17148, 23627, 62548, 4431),
                 _ranks("0 18 346 64917 65463", "+++--", "0 0 0 0 0")),
    "W": Problem(20, 16, 10, 1024, (357773, 934767, 875723, 898999, 404505),
                 _ranks("1249 11698 1039987 1043896 1048018", "++---", "-2 -2 0 0 0")),
    "A": Problem(23, 19, 10, 1024, (2112377, 662041, 5336171, 3642833, 4250760),
                 _ranks("104 17523 123928 8288932 8388264", "+++--", "-1 -1 -1 -1 -1")),
    "B": Problem(25, 21, 10, 1024, (41869, 812306, 5102857, 18232239, 26860214),
                 _ranks("33422937 10244 59149 33135281 99", "-++-+", "0 0 0 0 0")),
}  # fmt: skip


def build(comm: Any, problem: Problem) -> IS:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a power of two or too many."""
    log2_ranks("is", comm.size, problem.largest_ranks)
    return IS(comm, problem)


class IS(Kernel):
    """See :class:`runner.programs.nas.common.kernel.Kernel`."""

    def __init__(self, comm: Any, problem: Problem) -> None:
        self._comm, self._problem = comm, problem
        self.mpi = Stopwatch()
        self._count = (1 << problem.log2_keys) // comm.size
        self._buckets = 1 << problem.log2_buckets
        self._shift = problem.log2_range - problem.log2_buckets
        keys = 1 << problem.log2_keys
        self.facts = Facts(str(keys), ITERATIONS, float(ITERATIONS * keys), "keys ranked")
        self._passes = 0
        self._allocate()
        self._bind()

    def _allocate(self) -> None:
        # A rank may get 1.5 times the mean number of keys. Its span of keys may be the whole range
        # (one rank, or the thin ends of the distribution on many ranks).
        room = max(self._space_for_keys(), 1 << self._problem.log2_range)
        self._keys, self._outgoing, self._incoming = (np.zeros(room, np.uint32) for _ in range(3))
        tests = len(self._problem.test_places)
        self._sizes = np.zeros(self._buckets + tests, np.uint32)
        self._totals = np.zeros(self._buckets + tests, np.uint32)
        self._send_counts = np.zeros(self._comm.size, np.uint32)
        self._receive_counts = np.zeros(self._comm.size, np.uint32)
        self._spans = np.zeros((self._comm.size, 4), np.uint32)

    def _space_for_keys(self) -> int:
        for ranks, factor in ((256, 1.5), (512, 2.5), (1024, 4.0)):
            if self._comm.size < ranks:
                return int(factor * self._count)
        return int(6.5 * self._count)

    def _bind(self) -> None:
        kernels = load("runner.programs.nas.is_kernels")
        excess = BITS + 2 - self._problem.log2_range
        self._keys_state = scalars([0, MULTIPLIER, self._count, excess])
        self._make_keys = kernels.bind("make_keys", self._keys, self._keys_state)
        places = np.zeros(self._buckets, np.uint32)
        geometry = scalars([self._count, self._buckets, self._shift])
        self._fill_buckets = kernels.bind(
            "fill_buckets", self._keys, self._outgoing, self._sizes, places, geometry
        )
        division = scalars([self._buckets, self._comm.size, self._count])
        self._divide_buckets = kernels.bind(
            "divide_buckets", self._sizes, self._totals, self._send_counts, self._spans, division
        )
        # The ranks overwrite the sent keys, as in the original.
        self._range = scalars([0, 0, 0, 0])
        self._rank_keys = kernels.bind("rank_keys", self._incoming, self._outgoing, self._range)
        self._sort_keys = kernels.bind(
            "sort_keys", self._incoming, self._outgoing, self._keys, self._range
        )

    def prepare(self) -> None:
        self._keys_state[0] = jump(SEED, 4 * self._count * self._comm.rank)
        self._make_keys()
        self._rank(1)

    def solve(self) -> None:
        self._passes = 0
        for iteration in range(1, ITERATIONS + 1):
            self._rank(iteration)

    def _rank(self, iteration: int) -> None:
        """Rank all keys once; add the number of passed tests."""
        if self._comm.rank == 0:
            self._keys[iteration] = iteration
            self._keys[iteration + ITERATIONS] = (1 << self._problem.log2_range) - iteration
        self._fill_buckets()
        self._hide_tested_keys()
        with self.mpi:
            self._comm.Allreduce(self._sizes, self._totals)
        self._divide_buckets()
        self._exchange_keys()
        first, end, below, count = (int(n) for n in self._spans[self._comm.rank])
        low = first << self._shift
        self._range[:3] = count, low, (end << self._shift) - low
        self._rank_keys()
        self._test_ranks(iteration, below)

    def _hide_tested_keys(self) -> None:
        """Append the tested keys to the bucket sizes, so that they travel to all ranks."""
        for n, place in enumerate(self._problem.test_places):
            owner, index = divmod(place, self._count)
            mine = owner == self._comm.rank
            self._sizes[self._buckets + n] = self._keys[index] if mine else 0

    def _exchange_keys(self) -> None:
        with self.mpi:
            self._comm.Alltoall(self._send_counts, self._receive_counts)
        send_counts, receive_counts = self._send_counts, self._receive_counts
        outgoing = (send_counts, np.cumsum(send_counts) - send_counts)
        incoming = (receive_counts, np.cumsum(receive_counts) - receive_counts)
        with self.mpi:
            self._comm.Alltoallv([self._outgoing, outgoing], [self._incoming, incoming])

    def _test_ranks(self, iteration: int, below: int) -> None:
        """The original's partial verification: five keys must have their known ranks."""
        low, width = int(self._range[1]), int(self._range[2])
        for n, (rank, sign, lag) in enumerate(self._problem.ranks):
            place = int(self._totals[self._buckets + n]) - low
            if 0 <= place < width:
                smaller = int(self._outgoing[place - 1]) if place else 0
                self._passes += below + smaller == rank + sign * (iteration + lag)

    def checks(self) -> list[Check]:
        """Sort the keys by their ranks and count the passed tests, one more per rank in order."""
        in_order, count = self._sorted()
        largest_below = self._largest_below(count)
        if self._comm.rank and count and largest_below > self._keys[0]:
            in_order = False
        passes = np.array([self._passes + int(in_order)])
        total = np.zeros(1, passes.dtype)
        self._comm.Reduce(passes, total)
        return [_check(int(total[0]), self._problem, self._comm.size)]

    def _sorted(self) -> tuple[bool, int]:
        """Sort the keys by their ranks: whether they are in order now, and how many there are."""
        count = int(self._range[0])
        self._sort_keys()
        return bool(self._range[3] == 0), count

    def _largest_below(self, count: int) -> int:
        """The last key of the preceding rank (0 on rank 0)."""
        from mpi4py import MPI

        comm = self._comm
        last = self._keys[max(count - 1, 0) :][:1]
        below = np.zeros(1, np.uint32)
        up = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
        down = comm.rank - 1 if comm.rank else MPI.PROC_NULL
        comm.Sendrecv(last, up, 1000, below, down, 1000)
        return int(below[0])


def passed_tests(ranks: Sequence[tuple[int, bool, int, int, int]], problem: Problem) -> Check:
    """The verification of all ranks, in order.

    Of each: passed tests, whether its keys are in order, how many it has, its first and last key.
    """
    total, largest_below = 0, 0
    for passes, in_order, count, first, last in ranks:
        total += passes + int(in_order and not (count and largest_below > first))
        largest_below = last
    return _check(total, problem, len(ranks))


def _check(passes: int, problem: Problem, ranks: int) -> Check:
    expected = len(problem.ranks) * ITERATIONS + ranks
    return Check("Number of tests passed", float(passes), expected, 0.0)
