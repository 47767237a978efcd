"""One run: all cells of a sweep in random order, round by round; verify, print."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from runner.programs.apps.common.intranode import run_program, sweep
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import json_line
from runner.programs.apps.mcoll.loops import Loop
from runner.programs.apps.mcoll.options import Cell, Options, parse
from runner.runtimes.intranode.mcoll import Config, Counts, MultiObject


@dataclass
class CellBatches:
    """The batches of a cell: microseconds of an operation, by the slowest rank."""

    cell: Cell
    config: Config
    loop: Loop
    micros: list[float] = field(default_factory=list)
    traffic: tuple[float, float] = (0.0, 0.0)
    """Messages and bytes between nodes of one operation."""


def main(comm: Any, arguments: list[str]) -> int:
    """The loops on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    return run_program(comm, "mcoll", lambda: parse(arguments), _run)


def _run(comm: Any, options: Options) -> int:
    mcoll = agree(comm, lambda: MultiObject(comm, options.config, options.nodes))
    batches = agree(comm, lambda: [_prepare(mcoll, options, cell) for cell in options.cells])
    right = _sweep(mcoll, options, batches)
    if comm.rank == 0:
        _print(mcoll, options, batches, right)
    mcoll.close()
    return 0 if right else 1


def _prepare(mcoll: MultiObject, options: Options, cell: Cell) -> CellBatches:
    config = cell.config(options.config, options.operation)
    mcoll.configure(config)
    return CellBatches(cell, config, Loop(mcoll, options.operation, cell.size))


def _sweep(mcoll: MultiObject, options: Options, batches: list[CellBatches]) -> bool:
    """Run all batches; True if all data were right. The first round warms up."""
    right = True
    for number, one in sweep(batches, options.rounds, options.seed):
        calls = options.calls(one.cell.size)
        if number == 0:
            calls = max(1, calls // 10)
        mcoll.configure(one.config)
        good = one.loop.right(number) if number in (0, options.rounds) else True
        before = mcoll.counts
        mcoll.comm.Barrier()
        seconds = one.loop.batch(calls)
        everyone = mcoll.comm.allgather((seconds, good, _since(before, mcoll.counts)))
        right = right and all(answer[1] for answer in everyone)
        if number == 0:
            continue
        one.micros.append(1e6 * max(answer[0] for answer in everyone) / calls)
        messages, size = (sum(answer[2][n] for answer in everyone) for n in (0, 1))
        one.traffic = messages / calls, size / calls
    return right


def _since(before: Counts, after: Counts) -> tuple[int, int]:
    return after.messages - before.messages, after.bytes - before.bytes


def _print(mcoll: MultiObject, options: Options, batches: list[CellBatches], right: bool) -> None:
    topology = mcoll.topology
    assumption = " assumed" if mcoll.assumed else ""
    print(f"{options.operation}: {topology.nodes}{assumption} nodes of {topology.locals} ranks, "
          f"{options.rounds} rounds")  # fmt: skip
    print(f"{'bytes':>9}  {'form':>13}  k  radix  {'us':>10}  {'messages':>8} {'theory':>8}  "
          f"{'bytes sent':>11} {'theory':>11}")  # fmt: skip
    rows: list[dict[str, Any]] = []
    for one in batches:
        mcoll.configure(one.config)
        cell, theory, micros = one.cell, one.loop.theory(), statistics.median(one.micros)
        k, radix = (
            one.config.objects_of(topology.locals),
            one.config.radix_of(topology.locals),
        )
        row: dict[str, Any] = {
            "size": cell.size,
            "form": one.loop.form,
            "objects": k,
            "radix": radix,
            "us": micros,
            "messages": None,
            "bytes": None,
            "runs_us": one.micros,
        }
        words = f"{'-':>8} {'-':>8}  {'-':>11} {'-':>11}"
        if theory is not None:
            row |= {"messages": one.traffic[0], "bytes": one.traffic[1]}
            right = right and one.traffic == (theory.messages, theory.bytes)
            messages, volume = one.traffic
            words = f"{messages:>8.0f} {theory.messages:>8}  {volume:>11.0f} {theory.bytes:>11}"
        print(f"{cell.size:>9}  {row['form']:>13} {k:>2}  {radix:>5}  {micros:>10.2f}  {words}")
        rows.append(row)
    us = statistics.geometric_mean([row["us"] for row in rows])
    result = {
        "app": "mcoll",
        "operation": options.operation,
        "ranks": mcoll.size,
        "nodes": topology.nodes,
        "assumed": mcoll.assumed,
        "rounds": options.rounds,
        "us": us,
        "seconds": us / 1e6,
        "cells": rows,
        "configured": options.config_source,
        "verified": right,
    }
    print("the data are right" if right else "verification failed: data or counts are wrong")
    print(json_line(result), flush=True)
