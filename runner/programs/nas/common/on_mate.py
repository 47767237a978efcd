"""A kernel on MATE: over-decomposed, each rank with the arrays and messages of a flat one.

The ranks of all processes together are the ranks of the flat kernel, in order: a process has
consecutive ones. While one waits for a message, its worker computes for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from runner.programs.apps.common.mated import JobClock
from runner.programs.apps.common.meter import SAMPLE, RunTimes
from runner.programs.nas.common.kernel import Check, Facts
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.steps import Program
from runner.runtimes import mate


def step(program: Program, i: int) -> None:
    """Make the calls of a step, then start its messages; iteration ``i`` counts the steps."""
    n = i
    if n >= program.head:
        n = i - program.head
        if n < program.cycle * program.times:
            n = program.head + n % program.cycle
        else:
            n = i - program.cycle * (program.times - 1)
    is_sample = i % SAMPLE == 0
    cpu = program.ctx.cpu_seconds() if is_sample else 0.0
    begin = program.ctx.seconds()
    program.perform(program.calls, program.first_call[n], program.first_call[n + 1])
    seconds = program.ctx.seconds() - begin
    program.kernels_s[0] += seconds
    if is_sample:
        program.kernels_s[1] += seconds
        program.kernels_s[2] += program.ctx.cpu_seconds() - cpu
    for k in range(program.first_receive[n], program.first_receive[n + 1]):
        at = program.receive_extents[2 * k]
        end = at + program.receive_extents[2 * k + 1]
        memory = program.memories[program.receive_memories[k]]
        program.ctx.irecv(memory[at:end], program.sources[k], program.receive_tags[k])
    for k in range(program.first_send[n], program.first_send[n + 1]):
        at = program.send_extents[2 * k]
        end = at + program.send_extents[2 * k + 1]
        memory = program.memories[program.send_memories[k]]
        program.ctx.isend(memory[at:end], program.targets[k], program.send_tags[k])


def make_graph(is_compiled: bool) -> mate.Graph:
    """The graph of every kernel: a step begins when the messages of the last one are complete."""
    graph = mate.Graph("nas")
    graph.region("step", ["step*"], compiled=is_compiled)(step)
    return graph


GRAPH, IN_PYTHON = make_graph(is_compiled=True), make_graph(is_compiled=False)


@dataclass(frozen=True)
class Place:
    """A rank where the flat form of a kernel has a communicator."""

    rank: int
    size: int


class KernelRank(Protocol):
    """One rank of a kernel on MATE."""

    facts: Facts
    program: Program

    def start(self) -> None:
        """Set the start values; called before every repetition, not timed."""

    def begin(self) -> None:
        """What the timed part does in Python before the steps."""


R = TypeVar("R", bound=KernelRank)


class OnMate(Generic[R]):
    """The ranks of one process.

    ``make(place)`` creates a rank. The other two functions get the ranks of this process and are
    collective: ``check`` verifies the result of all ranks, ``prepare`` does once what they need of
    each other before they start. Raises what ``make`` raises.
    """

    def __init__(
        self,
        comm: Any,
        options: Options,
        make: Callable[[Place], R],
        check: Callable[[Sequence[R]], list[Check]],
        prepare: Callable[[Sequence[R]], None] | None = None,
    ) -> None:
        config = options.config
        assert config is not None
        self._comm, self._config, self._check = comm, config, check
        local = config.ranks_per_process
        first, size = comm.rank * local, comm.size * local
        self._ranks = [make(Place(first + n, size)) for n in range(local)]
        self.facts = self._ranks[0].facts
        self._graph = GRAPH if config.core == "native" else IN_PYTHON
        self._programs = [rank.program for rank in self._ranks]
        self._clock = JobClock()
        self._prepare = prepare

    @property
    def ranks(self) -> int:
        """Number of ranks of all processes."""
        return int(self._comm.size * self._config.ranks_per_process)

    def solve(self) -> RunTimes:
        """Time the kernel on this process after a warm-up and a barrier."""
        if self._prepare is not None:
            self._prepare(self._ranks)
            self._prepare = None
        report = mate.run(self._main, self._config, comm=self._comm)
        return self._clock.times(report, self._programs)

    def checks(self) -> list[Check]:
        """The results of the last :meth:`solve`; those of process 0 count."""
        return self._check(self._ranks)

    async def _main(self, ctx: mate.Context) -> None:
        rank = self._ranks[ctx.local_rank]
        program = rank.program
        program.ctx = ctx
        rank.start()
        await ctx.barrier()
        # The first cycle opens the connections, loads the region and touches all memory.
        rank.begin()
        await ctx.execute(self._graph, program.warm_up, state=program)
        await ctx.barrier()
        rank.start()
        await ctx.execute(self._graph, program.untimed, state=program)

        async def work() -> None:
            rank.begin()
            await ctx.execute(self._graph, program.timed, state=program)

        await self._clock.time(ctx, self._programs, work)


def doubling(size: int, rank: int) -> list[int]:
    """The partners of a rank in a sum over all ranks, a power of two: one for each round."""
    return [rank ^ (1 << n) for n in range(size.bit_length() - 1)]
