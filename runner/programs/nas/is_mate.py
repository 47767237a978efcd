"""IS on MATE: the keys for each other rank are a message, whose length is known once it runs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check
from runner.programs.nas.common.on_mate import OnMate, Place, doubling
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.random import SEED, jump
from runner.programs.nas.common.steps import Message, Steps
from runner.runtimes.core.kernels import load, scalars

# The module's name is a keyword.
flat: Any = importlib.import_module("runner.programs.nas.is")


def build(comm: Any, options: Options) -> OnMate[ISRank]:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a power of two or too many."""

    def check(ranks: Sequence[ISRank]) -> list[Check]:
        own = [rank.verified() for rank in ranks]
        everyone = [one for process in comm.allgather(own) for one in process]
        return [flat.passed_tests(everyone, options.problem)]

    return OnMate(comm, options, lambda place: ISRank(place, options), check)


class ISRank(flat.IS):  # type: ignore[misc]
    """One rank: see :class:`runner.programs.nas.common.on_mate.KernelRank`."""

    def __init__(self, place: Place, options: Options) -> None:
        log2_ranks("is", place.size, options.problem.largest_ranks)
        super().__init__(place, options.problem)
        self._place, self._pieces = place, options.split
        self._kernels = load("runner.programs.nas.is_mate_kernels")
        rows = (place.size - 1) * options.split
        self._sends, self._receives = (np.zeros((rows, 2), np.int64) for _ in range(2))
        self._passed = np.zeros(1, np.int64)
        self._steps = Steps(options.split)
        self._write_steps()
        self.program = self._steps.finish()

    def start(self) -> None:
        self._keys_state[0] = jump(SEED, 4 * self._count * self._place.rank)
        self._make_keys()
        self._iteration[0] = 0
        self._passed[0] = 0

    def begin(self) -> None:
        """Nothing is done in Python."""

    def _write_steps(self) -> None:
        problem, place, bind = self._problem, self._place, self._kernels.bind
        call, tests = self._steps.call, len(problem.test_places)
        # Buckets, tested keys, the iteration, keys in lower buckets; the last two are copied.
        counters = scalars([self._buckets, tests, 0, 0])
        self._iteration = scalars([0, flat.ITERATIONS, 1 << problem.log2_range, place.rank == 0])
        position = scalars([place.rank, self._shift, 0])
        places = []
        for owner, index in (divmod(one, self._count) for one in problem.test_places):
            places += [owner == place.rank, index if owner == place.rank else 0]
        expected = np.array(problem.ranks, np.int64).reshape(-1)
        with self._steps.repeated(flat.ITERATIONS):
            call(bind("mark_keys", self._keys, self._iteration))
            call(self._fill_buckets)
            call(bind("hide_tested_keys", self._keys, self._sizes, scalars(places), counters))
            self._write_totals()
            call(self._divide_buckets)
            self._write_exchange()
            call(bind("set_range", self._spans.reshape(-1), self._range, position))
            call(self._rank_keys)
            self._steps.copy(_word(self._iteration, 0), _word(counters, 2))
            self._steps.copy(_word(position, 2), _word(counters, 3))
            ranks = self._totals, self._outgoing, self._range
            call(bind("test_ranks", *ranks, expected, self._passed, counters))

    def _write_totals(self) -> None:
        """Sum the bucket sizes of all ranks."""
        bind, steps, size = self._kernels.bind, self._steps, scalars([len(self._sizes)])
        steps.call(bind("copy_counts", self._sizes, self._totals, size))
        other = np.zeros_like(self._totals)
        for partner in doubling(self._place.size, self._place.rank):
            steps.exchange([Message(partner, self._totals)], [Message(partner, other)])
            steps.call(bind("add_counts", self._totals, other, size))

    def _write_exchange(self) -> None:
        """Tell every rank how many keys it gets, then send them."""
        place, bind, steps = self._place, self._kernels.bind, self._steps
        ranks, me = place.size, place.rank
        out, come = self._send_counts, self._receive_counts
        one, own = scalars([1]), np.zeros(3, np.int64)
        steps.call(bind("copy_counts", out[me : me + 1], come[me : me + 1], one))
        later = [(me + n) % ranks for n in range(1, ranks)]
        earlier = [(me - n) % ranks for n in range(1, ranks)]
        steps.exchange(
            [Message(rank, out[rank : rank + 1]) for rank in later],
            [Message(rank, come[rank : rank + 1]) for rank in earlier],
        )
        position = scalars([ranks, me, self._pieces])
        extents = self._sends, self._receives
        steps.call(bind("place_messages", out, come, *extents, own, position))
        steps.call(bind("copy_own_keys", self._outgoing, self._incoming, own))
        steps.exchange(
            self._messages(later, self._outgoing, self._sends),
            self._messages(earlier, self._incoming, self._receives),
        )

    def _messages(self, ranks: Sequence[int], keys: Any, extents: Any) -> list[Message]:
        n = self._pieces
        return [
            Message(rank, keys, extents=extents[n * row : n * (row + 1)])
            for row, rank in enumerate(ranks)
        ]

    def verified(self) -> tuple[int, bool, int, int, int]:
        """What :func:`runner.programs.nas.is.passed_tests` needs of a rank; sorts its keys."""
        self._passes = int(self._passed[0])
        in_order, count = self._sorted()
        return self._passes, in_order, count, int(self._keys[0]), int(self._keys[max(count - 1, 0)])


def _word(state: Any, place: int) -> Any:
    """A word of a state as an array for a copy."""
    return state[place : place + 1].view(np.float64)
