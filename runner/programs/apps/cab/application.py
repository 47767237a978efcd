"""One run: all cells of a sweep in random order, round by round; verify, print."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from runner.cpus import with_siblings
from runner.programs.apps.cab.options import Cell, Options, parse
from runner.programs.apps.cab.product import Product
from runner.programs.apps.cab.programs import Program, make
from runner.programs.apps.common.errors import AppError, AppUsageError
from runner.programs.apps.common.intranode import run_program, sweep
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import json_line
from runner.runtimes.intranode import Cab, saturation_number
from runner.runtimes.workers.affinity import cpu_mask, pin


@dataclass
class CellBatches:
    """The batches of a cell: microseconds of an operation, and the share of chunks stolen."""

    cell: Cell
    micros: list[float] = field(default_factory=list)
    stolen_shares: list[float] = field(default_factory=list)


def main(comm: Any, arguments: list[str]) -> int:
    """The programs on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    return run_program(comm, "cab", lambda: parse(arguments, comm.size), _run)


def _run(comm: Any, options: Options) -> int:
    agree(comm, lambda: _pin(comm, options))
    cab = agree(comm, lambda: Cab(comm, options.config))
    if cab.size != comm.size:
        raise AppUsageError(
            f"{comm.size} ranks on several nodes, {cab.size} of them here: start all on one node",
            code="app_option.ranks",
        )
    program = agree(comm, lambda: make(cab, options))
    batches = [CellBatches(cell) for cell in options.cells]
    right = _sweep(cab, options, program, batches)
    cab.close()
    if comm.rank == 0:
        _print(options, comm.size, batches, right, program)
    return 0 if right else 1


def _pin(comm: Any, options: Options) -> None:
    """Pin each rank to a core; second hardware threads of cores come last."""
    if not options.pin:
        return
    cpus = cpu_mask()
    if comm.size > len(cpus):
        raise AppUsageError(
            f"--pin: {comm.size} ranks, but they may use only {len(cpus)} cores; leave it out, or "
            "start mpirun with --bind-to none",
            code="app_option.ranks",
        )
    order = sorted(cpus, key=lambda cpu: (sorted(with_siblings([cpu])).index(cpu), cpu))
    pin(order[comm.rank], AppError)


def _sweep(cab: Cab, options: Options, program: Program, batches: list[CellBatches]) -> bool:
    """Run all batches; True if all data were right. The first round warms up."""
    right = True
    for number, cell in sweep(batches, options.rounds, options.seed):
        times = options.times if number else max(1, options.times // 10)
        cab.configure(cell.cell.config(options.config))
        cab.steals = 0 < cell.cell.workers >= cab.rank
        cab.barrier()
        before = cab.chunks
        begin, end = program.batch(times, cell.cell.workers)
        after = cab.chunks
        # Idle ranks wait here, and help.
        cab.barrier()
        good = program.right() if number in (0, options.rounds) else True
        everyone = cab.comm.allgather(
            (begin, end, after.own - before.own, after.given - before.given, good)
        )
        right = right and all(answer[-1] for answer in everyone)
        if number == 0:
            continue
        seconds = max(answer[1] for answer in everyone) - min(answer[0] for answer in everyone)
        own, thefts = (sum(answer[n] for answer in everyone) for n in (2, 3))
        cell.micros.append(1e6 * seconds / (times * program.operations))
        cell.stolen_shares.append(thefts / (own + thefts) if own + thefts else 0.0)
    return right


def _print(
    options: Options, ranks: int, batches: list[CellBatches], right: bool, program: Program
) -> None:
    probe = options.program == "saturation"
    product = program if isinstance(program, Product) else None
    print(f"{options.program}: {options.size} bytes, {ranks} ranks, {options.rounds} rounds of "
          f"{options.times} operations")  # fmt: skip
    word = "copying" if probe else "helpers"
    print(f"{word:>7}  {'chunk':>8}  {'us':>10}  {'MB/s':>10}  stolen")
    rows: list[dict[str, Any]] = []
    for one in batches:
        cell, micros = one.cell, statistics.median(one.micros)
        byte_count = options.size * (cell.workers if probe and not options.share else 1)
        if product:
            byte_count = product.byte_count
        chunk = cell.chunk or cell.config(options.config).chunk(options.size)
        rate, share = byte_count / micros, statistics.median(one.stolen_shares)
        print(f"{cell.workers:>7}  {chunk:>8}  {micros:>10.2f}  {rate:>10.0f}  {100 * share:.0f} %")
        rows.append(
            {
                "workers": cell.workers,
                "chunk": chunk,
                "us": micros,
                "mb_per_s": rate,
                "stolen": share,
                "runs_us": one.micros,
            }
        )
    result: dict[str, Any] = {
        "app": "cab",
        "program": options.program,
        "size": options.size,
        "ranks": ranks,
        "rounds": options.rounds,
        "times": options.times,
        "us": rows[-1]["us"],
        "seconds": rows[-1]["us"] / 1e6,
        "mb_per_s": rows[-1]["mb_per_s"],
        "cells": rows,
        "configured": options.config_source,
        "verified": right,
    }
    if product:
        for row in rows:
            row["gflops"] = product.flops / row["us"] / 1e3
        result |= {
            "gflops": rows[-1]["gflops"],
            "tasks": product.tasks,
            "width": options.width,
            "blocks": options.blocks,
            "absent": options.absent,
        }
        print(f"{product.tasks} products of blocks, {result['gflops']:.2f} GFLOP/s")
    if probe:
        number = saturation_number({r["workers"]: r["mb_per_s"] for r in rows})
        result["saturation"] = number
        print(f"the memory is saturated by {number} ranks")
    print("the data are right" if right else "verification failed: the data are wrong")
    print(json_line(result), flush=True)
