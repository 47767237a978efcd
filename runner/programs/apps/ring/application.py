"""One run of the ring: laps before the clock starts, timed laps, verify, print."""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.programs.apps.ring.options import TASKS, Options, parse
from runner.programs.apps.ring.variants import run_mpi, run_tarragon


def main(comm: Any, arguments: list[str]) -> int:
    """The application on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments, comm.size))
    if print_help(comm, options):
        return 0
    run = run_tarragon if options.variant in TASKS else run_mpi
    everyone = comm.gather(run(comm, options))
    code: int = comm.bcast(_print(options, everyone) if comm.rank == 0 else 0)
    return code


def _print(options: Options, everyone: list[tuple[float, bool]]) -> int:
    seconds = max(duration for duration, _ in everyone)
    right = all(good for _, good in everyone)
    places = options.tasks if options.variant in TASKS else len(everyone)
    hops = options.laps * places
    latency_us = seconds / hops * 1e6
    print(
        f"ring, {options.variant}: {options.laps} laps of {options.size} bytes over {places} "
        f"places, {len(everyone)} ranks"
    )
    print(f"{latency_us:.2f} us a hop, {options.size / latency_us:.1f} MB/s")
    print("the message is right" if right else "verification failed: the message is wrong")
    result = {
        "app": "ring",
        "variant": options.variant,
        "size": options.size,
        "laps": options.laps,
        "places": places,
        "ranks": len(everyone),
        "seconds": seconds,
        "latency_s": latency_us / 1e6,
        "latency_us": latency_us,
        "mb_per_s": options.size / latency_us,
        "verified": right,
    }
    print(json_line(result), flush=True)
    return 0 if right else 1
