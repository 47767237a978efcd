"""One run of a pattern: set up, one step before the clock starts, timed steps, verify, print."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.pattern.chain import Chain
from runner.programs.apps.pattern.collective import Broadcast, Reduce, Transpose
from runner.programs.apps.pattern.exchange import Halo, Irregular
from runner.programs.apps.pattern.options import Options, parse
from runner.programs.apps.pattern.tasks import MasterWorker
from runner.programs.apps.pattern.work import Pattern, Work

BUILDERS: dict[str, Callable[[Any, Options, Work], Pattern]] = {
    "halo1d": partial(Halo, axes=1),
    "halo2d": partial(Halo, axes=2),
    "halo3d": partial(Halo, axes=3),
    "wavefront": partial(Chain, axes=2),
    "pipeline": partial(Chain, axes=1),
    "irregular": Irregular,
    "transpose": Transpose,
    "broadcast": Broadcast,
    "reduce": Reduce,
    "master-worker": MasterWorker,
}
"""The constructor of each of :data:`runner.programs.apps.pattern.options.KINDS`."""


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments, comm.size))
    if print_help(comm, options):
        return 0
    work = Work()
    pattern = BUILDERS[options.kind](comm, options, work)
    # Opens the connections and touches the memory.
    pattern.run(0, 1)
    work.seconds = 0.0
    startup_s = perf_counter() - begin
    with TimedPart(comm) as part:
        pattern.run(1, options.steps + 1)
    wrong = " and ".join(filter(None, (pattern.wrong(), work.wrong())))
    everyone = comm.gather((part.seconds, work.seconds, work.calls, startup_s, wrong))
    code: int = comm.bcast(_print(options, everyone) if comm.rank == 0 else 0)
    return code


def _print(options: Options, everyone: list[tuple[float, float, int, float, str]]) -> int:
    """Print the result of all ranks; returns the exit code of the run."""
    seconds, computing, calls, startup_s, wrong = zip(*everyone, strict=True)
    slowest = max(seconds)
    compute_s = sum(computing) / len(computing)
    faults = [f"rank {rank}: {words}" for rank, words in enumerate(wrong) if words]
    print(
        f"pattern {options.kind}: {options.steps} steps, {options.size} bytes, "
        f"{options.work} calls, {len(everyone)} ranks"
    )
    print(f"{slowest:.4f} s, {100 * (1 - compute_s / slowest):.0f} % of it not computing")
    print(f"verification failed: {faults[0]}" if faults else "all messages and sums are right")
    result = {
        "app": "pattern",
        "kind": options.kind,
        "size": options.size,
        "steps": options.steps,
        "work": options.work,
        "imbalance": options.imbalance,
        "seed": options.seed,
        "ranks": len(everyone),
        "seconds": slowest,
        "verified": not faults,
        "compute_s": compute_s,
        "calls": sum(calls),
        "startup_s": max(startup_s),
    }
    print(json_line(result), flush=True)
    return 1 if faults else 0
