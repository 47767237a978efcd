"""Shared parts of the applications that run as flat MPI and on MATE: options and timing."""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

from runner.programs.apps.common.errors import AppError, AppUsageError
from runner.programs.apps.common.meter import KernelCounter, RunTimes, timed_of
from runner.programs.apps.common.options import OptionParser, positive
from runner.published_layout import (
    PublishedLayout,
    PublishedLayoutError,
    published_layout,
)
from runner.runtimes import mate
from runner.runtimes.mate.config import add_arguments, from_arguments


@dataclass(frozen=True, kw_only=True)
class MatedOptions:
    """Common options; ``input`` is None for a size in numbers, ``help`` is the text to print."""

    input: str | None
    repetitions: int
    variant: str
    config: mate.Config
    help: str | None

    @property
    def thread_level(self) -> str:
        """The thread level that MPI must be started with, as mpi4py names it."""
        return self.config.thread_level if self.variant == "mate" else "single"


class StartOptions(Protocol):
    """Options that determine how MPI must be started."""

    @property
    def thread_level(self) -> str: ...


def level_of(parse: Callable[[list[str]], StartOptions], arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    try:
        return parse(arguments).thread_level
    except AppError:
        return "single"


def add_common(
    parser: OptionParser,
    variants: Sequence[str],
    about: str = "how the ranks work together",
) -> None:
    """Add the options common to all these applications; the runtime's own options come last.

    ``about`` is the help of ``--variant``.
    """
    parser.add_argument(
        "--repetitions", type=positive, default=1, metavar="K", help="solve K times"
    )
    parser.add_argument("--variant", choices=variants, default="mpi", help=about)
    add_arguments(parser)


def chosen_input(inputs: Iterable[str], name: str | None, size: tuple[str, Any]) -> str | None:
    """The name of the input; "default" if none is given, None if a size is given.

    ``size`` is the switch of the size and its value. Raises :class:`AppUsageError` if both are
    given, or for an unknown name.
    """
    switch, value = size
    if value is not None:
        if name is not None:
            raise AppUsageError(
                f"--input {name} and {switch} {value} exclude each other",
                code="app_option.conflict",
            )
        return None
    name = name or "default"
    if name not in inputs:
        raise AppUsageError(
            f"--input {name} is unknown; there are {', '.join(inputs)}", code="app_option.unknown"
        )
    return name


def config_of(options: Namespace, runtime: str = "") -> mate.Config:
    """The runtime's configuration; raises :class:`AppUsageError`.

    ``runtime``: whose published layout says how many ranks a worker has, where the command line
    says nothing of them; "" if the program cannot be cut so.
    """
    with as_usage_error(mate.MateError):
        config = from_arguments(options)
        if options.ranks_per_process == 0 and options.local_grid is None and runtime:
            factor = layout_of_runtime(runtime).factor or 1
            config = replace(config, ranks_per_process=factor * config.workers)
        return config


def layout_of_runtime(runtime: str) -> PublishedLayout:
    """The published layout of a runtime; none for ""; raises :class:`AppUsageError`."""
    if not runtime:
        return PublishedLayout()
    try:
        return published_layout(runtime)
    except PublishedLayoutError as error:
        raise AppUsageError(str(error), code=error.code) from None


@contextmanager
def as_usage_error(kind: type[mate.MateError] = mate.ConfigError) -> Iterator[None]:
    """Report a refusal of the runtime as the user's error, raised on all processes.

    An example is more workers than CPUs.
    """
    try:
        yield
    except kind as error:
        raise AppUsageError(str(error), code=error.code) from None


class JobClock:
    """The clock of a process of a MATE job, from when all its ranks begin until all have ended."""

    def __init__(self) -> None:
        self._begin = self._end = 0.0

    async def time(
        self,
        ctx: mate.Context,
        pieces: Iterable[KernelCounter],
        work: Callable[[], Awaitable[None]],
    ) -> None:
        """Do a rank's work after a barrier; ``pieces``: those of all ranks of the process."""
        await ctx.barrier()
        if ctx.local_rank == 0:
            # The other ranks of the process wait meanwhile. The clock starts before the timers and
            # stops after them, so that it covers everything they count.
            for each in pieces:
                each.kernels_s.fill(0.0)
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        await work()
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()

    def times(self, report: mate.Report, pieces: Iterable[KernelCounter]) -> RunTimes:
        """The times of the process."""
        totals = report.totals()
        traffic = int(totals["messages"]), int(totals["bytes"])
        return timed_of(self._end - self._begin, report.workers, pieces, traffic)


def largest(comm: Any, value: float) -> float:
    """The largest value over all processes, on each process. Collective."""
    from mpi4py import MPI

    return float(comm.allreduce(value, op=MPI.MAX))


def typical(comm: Any, runs: Sequence[RunTimes]) -> tuple[float, RunTimes, list[float]]:
    """Median of the repetitions (the lower of two), this process's part of it, and all of them.

    A repetition takes the seconds of its slowest process. Collective.
    """
    seconds = [largest(comm, times.wall_s) for times in runs]
    middle = statistics.median_low(seconds)
    return middle, runs[seconds.index(middle)], seconds
