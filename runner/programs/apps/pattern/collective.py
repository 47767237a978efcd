"""Patterns of one collective operation per step."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.pattern.options import WORD, Options
from runner.programs.apps.pattern.work import Message, Work, share


class Transpose:
    """Every rank sends a block to every rank; the first word of a block identifies sender and
    step."""

    def __init__(self, comm: Any, options: Options, work: Work) -> None:
        self._comm, self._work = comm, work
        self._calls = share(options, comm.rank, comm.size)
        ranks, words = np.arange(comm.size), options.size // WORD
        self._out = self._blocks(comm.rank * comm.size + ranks, words)
        self._reference = self._blocks(ranks * comm.size + comm.rank, words)
        self._in = np.zeros_like(self._out)
        self._faults = 0

    @staticmethod
    def _blocks(keys: Any, words: int) -> Any:
        return (keys[:, None] << 40) + np.arange(words)

    def run(self, first: int, end: int) -> None:
        exchange, out, back = self._comm.Alltoall, self._out, self._in
        out_words, in_words = out[:, 0], back[:, 0]
        start_words, reference = out_words.copy(), self._reference[:, 0].copy()
        for step in range(first, end):
            np.add(start_words, step, out_words)
            exchange(out, back)
            self._faults += bool((in_words - step != reference).any())
            self._work.do(self._calls)
        out_words[:] = start_words

    def wrong(self) -> str:
        if self._faults:
            return f"blocks of a wrong rank or step in {self._faults} steps"
        right = np.array_equal(self._in[:, 1:], self._reference[:, 1:])
        return "" if right else "words of a block"


class Broadcast:
    """The ranks take turns as the root."""

    def __init__(self, comm: Any, options: Options, work: Work) -> None:
        self._comm, self._work = comm, work
        self._calls = share(options, comm.rank, comm.size)
        self._messages = [
            Message(options.size, root, is_outgoing=root == comm.rank) for root in range(comm.size)
        ]

    def run(self, first: int, end: int) -> None:
        broadcast, ranks, mine = self._comm.Bcast, self._comm.size, self._comm.rank
        buffers = [message.buffer for message in self._messages]
        for step in range(first, end):
            root = step % ranks
            message = self._messages[root]
            if root == mine:
                message.stamp(step)
            broadcast(buffers[root], root)
            message.check(step)
            self._work.do(self._calls)

    def wrong(self) -> str:
        return "".join({message.wrong() for message in self._messages})


class Reduce:
    """Sums of doubles: in even steps on all ranks, in odd steps on rank 0."""

    def __init__(self, comm: Any, options: Options, work: Work) -> None:
        self._comm, self._work = comm, work
        self._calls = share(options, comm.rank, comm.size)
        places = np.arange(options.size // WORD, dtype=np.float64)
        # Small integers, so that the sums are exact in every order.
        self._mine = places + comm.rank
        self._reference = places * comm.size + comm.size * (comm.size - 1) / 2
        self._whole = [np.zeros_like(self._mine), np.zeros_like(self._mine)]
        self._faults = 0

    def run(self, first: int, end: int) -> None:
        ranks, rank = self._comm.size, self._comm.rank
        on_all, on_first = self._comm.Allreduce, self._comm.Reduce
        mine, (everywhere, root_sum) = self._mine, self._whole
        own, right = mine.data, float(self._reference[0])
        sums = everywhere.data, root_sum.data
        for step in range(first, end):
            own[0] = rank + step
            odd = step % 2
            if odd:
                on_first(mine, root_sum, root=0)
            else:
                on_all(mine, everywhere)
            if not odd or rank == 0:
                self._faults += sums[odd][0] != right + ranks * step
            self._work.do(self._calls)

    def wrong(self) -> str:
        if self._faults:
            return f"{self._faults} sums of a step"
        sums = [whole for whole in self._whole if whole.any()]
        right = all(np.array_equal(whole[1:], self._reference[1:]) for whole in sums)
        return "" if right else "words of a sum"
