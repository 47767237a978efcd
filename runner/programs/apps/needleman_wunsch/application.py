"""One run: set up, a small alignment before the clock starts, the timed one, verify, print."""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.needleman_wunsch.options import TASKS, Options, parse
from runner.programs.apps.needleman_wunsch.problem import prepare, reference, sequences
from runner.programs.apps.needleman_wunsch.variant_mpi import Rows
from runner.programs.apps.needleman_wunsch.variant_tarragon import Alignment


def main(comm: Any, arguments: list[str]) -> int:
    """The application on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    agree(comm, prepare)
    small = dataclasses.replace(
        options, length=64 * comm.size, rows=32, columns=32, config=options.config
    )
    _align(comm, small)
    seconds, score, more = _align(comm, options)
    everyone = comm.gather((seconds, score, more))
    code: int = comm.bcast(_print(options, everyone) if comm.rank == 0 else 0)
    return code


def _align(comm: Any, options: Options) -> tuple[float, int | None, dict[str, float]]:
    """Seconds on this rank, the score if it is here, and figures of the runtime."""
    first, second = sequences(options.length, options.seed)
    if options.variant in TASKS:
        alignment = agree(comm, lambda: Alignment(comm, first, second, options))
        with TimedPart(comm):
            alignment.run()
        alignment.close()
        busy = sum(times.compute_s for times in alignment.times)
        more = {
            "tasks": float(alignment.tasks),
            "compute_s": busy,
            "init_s": alignment.init_time,
        }
        return alignment.exec_time, alignment.score, more
    rows = Rows(comm, first, second, options)
    with TimedPart(comm) as part:
        if options.variant == "async":
            rows.asynchronous(options.window)
        else:
            rows.synchronous()
    return part.seconds, rows.score, {}


def _print(options: Options, everyone: list[tuple[float, int | None, dict[str, float]]]) -> int:
    seconds = max(duration for duration, _, _ in everyone)
    (score,) = [value for _, value, _ in everyone if value is not None]
    right: bool | None = None
    if options.verify:
        right = score == reference(*sequences(options.length, options.seed))
    rate = options.length**2 / seconds / 1e6
    print(
        f"needleman-wunsch, {options.variant}: {options.length} bases, blocks of {options.rows} x "
        f"{options.columns}, {len(everyone)} ranks"
    )
    print(f"{seconds:.4f} s, {rate:.0f} million entries/s; score {score}")
    if right is not None:
        print("the score is right" if right else "verification failed: the score is wrong")
    result = {
        "app": "needleman-wunsch",
        "input": options.input,
        "variant": options.variant,
        "length": options.length,
        "rows": options.rows,
        "columns": options.columns,
        "ranks": len(everyone),
        "seconds": seconds,
        "score": score,
        "verified": right,
        **{name: sum(m[name] for _, _, m in everyone) for name in everyone[0][2]},
    }
    print(json_line(result), flush=True)
    return 1 if right is False else 0
