"""Compiled tasks outside of MATE's jobs: states whose regions run on a core, one part for each.

Other runtimes (:mod:`runner.runtimes.tarragon`, :mod:`runner.runtimes.tpod`) give each of their
tasks a rank of the core, bind its state here, and link the regions of all tasks by their own rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.errors import RunnerError
from runner.runtimes.core.core import Core
from runner.runtimes.core.memory import Part
from runner.runtimes.core.mpi_table import MessageTable, addresses
from runner.runtimes.core.stacks import Stacks
from runner.runtimes.core.words import CORE, MPI_FAILED, NODE, RAN_TO_END, YIELDED
from runner.runtimes.mate.compiled import compiled_graph
from runner.runtimes.mate.compiled.block import Block
from runner.runtimes.mate.errors import GraphError, MateError
from runner.runtimes.mate.native.failure import native_failure
from runner.runtimes.mate.rank_position import Place


class Tasks:
    """The compiled tasks of one process, by their place among the core's ranks.

    ``size``: tasks of the whole job.
    """

    def __init__(self, core: Core, process: int, processes: int, size: int) -> None:
        self._core, self._process, self._processes, self._size = core, process, processes, size
        self._blocks: list[Block] = []
        self.parts: list[Part] = []
        """The parts of the tasks, in the order in which they were bound."""
        self._begin_flags: list[bool] = []
        self._stacks: Stacks | None = None

    def bind(self, number: int, state: Any, indices: Sequence[int]) -> None:
        """Bind the next task, with its number in the job.

        ``state``: its ``regions`` are a graph, and its ``ctx`` is set here. ``indices``: which of
        its regions run, the most urgent first.

        Raises :class:`GraphError` for code that cannot be compiled.
        """
        core, place = self._core, len(self.parts)
        if not state.regions.compiled:
            raise GraphError(
                "MATE_CHECK=1 is for MATE's regions: compiled tasks do not run so",
                code="mate.compiled_run",
            )
        state.ctx = Place(
            rank=number,
            local_rank=place,
            size=self._size,
            local_count=len(core.ranks),
            process=self._process,
            process_count=self._processes,
            workers=len(core.workers),
        )
        words = core.ranks[place], *core.called
        graph = compiled_graph(state.regions)
        block = graph.bind(state, lambda _: words, place)
        part = core.part(place, len(indices))
        for index, region in enumerate(indices):
            part.compiled(index, block.entry(region), block.address)
        waiting = [part.nodes[n] for n, region in enumerate(indices) if region in graph.waiting]
        if waiting:
            self._stacks = self._stacks or Stacks(core)
            self._stacks.give([(part.memory, node) for node in waiting])
        self._blocks.append(block)
        self.parts.append(part)
        self._begin_flags.append(False)

    def turn(self, worker: int, place: int, steps: int) -> int:
        """Start a task, or end it after all its steps: an answer for the core.

        Raises :class:`runner.runtimes.mate.errors.MateError` if compiled code was misled.
        """
        if self._begin_flags[place]:
            self._blocks[place].check()
            return RAN_TO_END
        self._begin_flags[place] = True
        part = self.parts[place].address
        self._core.enter(self._core.workers[worker], part, steps, 0, 1, 0)
        return YIELDED

    def step_count(self, place: int) -> int:
        """Steps that the last region of a task has finished."""
        part = self.parts[place]
        return part.get(part.nodes[-1] + NODE.done)


def message_table(comm: Any, most: int, is_serialized: bool, top: int = 0) -> MessageTable:
    """What the core needs to send between processes with at most ``most`` tasks each.

    ``top``: the largest tag of a task. Raises :class:`RunnerError` if MPI's tags are too short.
    """
    from mpi4py import MPI

    bits = max(most - 1, 0).bit_length()
    if (top + 1) << 2 * bits > comm.Get_attr(MPI.TAG_UB) + 1:
        raise RunnerError(
            f"{most} compiled tasks on a process: MPI's tags cannot name so many; use fewer",
            code="mate.compiled_run",
        )
    return MessageTable(
        process=comm.rank,
        direct=False,
        serialized=is_serialized,
        tag_bits=bits,
        tag_top=top,
        **addresses(MPI, comm),
    )


def failure(core: Core, code: int) -> MateError:
    """The error found by compiled code."""
    fields = CORE.failed_a, CORE.failed_b, CORE.failed_c
    a, b, c = (core.word(field) for field in fields)
    if code == MPI_FAILED:
        return MateError(
            f"MPI could not start or complete a message (error {a}): a receive buffer smaller than "
            "its message does that",
            code="mate.compiled_run",
        )
    return native_failure(core, code, None, a, b, c)
