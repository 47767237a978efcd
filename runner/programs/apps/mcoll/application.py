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
class Measured:
    """The batches of a cell: microseconds of an operation, by the slowest rank."""

    cell: Cell
    config: Config
    loop: Loop
    micros: list[float] = field(default_factory=list)
    sent: tuple[float, float] = (0.0, 0.0)
    """Messages and bytes between nodes of one operation."""


def main(comm: Any, arguments: list[str]) -> int:
    """The loops on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    return run_program(comm, "mcoll", lambda: parse(arguments), _run)


def _run(comm: Any, options: Options) -> int:
    made = agree(comm, lambda: MultiObject(comm, options.config, options.nodes))
    measured = agree(comm, lambda: [_measured(made, options, cell) for cell in options.cells])
    right = _sweep(made, options, measured)
    if comm.rank == 0:
        _print(made, options, measured, right)
    made.close()
    return 0 if right else 1


def _measured(made: MultiObject, options: Options, cell: Cell) -> Measured:
    config = cell.config(options.config, options.operation)
    made.configure(config)
    return Measured(cell, config, Loop(made, options.operation, cell.size))


def _sweep(made: MultiObject, options: Options, measured: list[Measured]) -> bool:
    """Run all batches; whether all data were right.  The first round warms up."""
    right = True
    for number, one in sweep(measured, options.rounds, options.seed):
        calls = options.calls(one.cell.size)
        if number == 0:
            calls = max(1, calls // 10)
        made.configure(one.config)
        good = one.loop.right(number) if number in (0, options.rounds) else True
        before = made.counts
        made.comm.Barrier()
        seconds = one.loop.batch(calls)
        everyone = made.comm.allgather((seconds, good, _since(before, made.counts)))
        right = right and all(told[1] for told in everyone)
        if number == 0:
            continue
        one.micros.append(1e6 * max(told[0] for told in everyone) / calls)
        messages, size = (sum(told[2][n] for told in everyone) for n in (0, 1))
        one.sent = messages / calls, size / calls
    return right


def _since(before: Counts, after: Counts) -> tuple[int, int]:
    return after.messages - before.messages, after.bytes - before.bytes


def _print(made: MultiObject, options: Options, measured: list[Measured], right: bool) -> None:
    topology = made.topology
    assumed = " assumed" if made.assumed else ""
    print(f"{options.operation}: {topology.nodes}{assumed} nodes of {topology.locals} ranks, "
          f"{options.rounds} rounds")  # fmt: skip
    print(f"{'bytes':>9}  {'form':>13}  k  radix  {'us':>10}  {'messages':>8} {'theory':>8}  "
          f"{'bytes sent':>11} {'theory':>11}")  # fmt: skip
    rows: list[dict[str, Any]] = []
    for one in measured:
        made.configure(one.config)
        cell, told, micros = one.cell, one.loop.theory(), statistics.median(one.micros)
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
        if told is not None:
            row |= {"messages": one.sent[0], "bytes": one.sent[1]}
            right = right and one.sent == (told.messages, told.bytes)
            words = f"{one.sent[0]:>8.0f} {told.messages:>8}  {one.sent[1]:>11.0f} {told.bytes:>11}"
        print(f"{cell.size:>9}  {row['form']:>13} {k:>2}  {radix:>5}  {micros:>10.2f}  {words}")
        rows.append(row)
    us = statistics.geometric_mean([row["us"] for row in rows])
    result = {
        "app": "mcoll",
        "operation": options.operation,
        "ranks": made.size,
        "nodes": topology.nodes,
        "assumed": made.assumed,
        "rounds": options.rounds,
        "us": us,
        "seconds": us / 1e6,
        "cells": rows,
        "configured": options.configured,
        "verified": right,
    }
    print("the data are right" if right else "verification failed: data or counts are wrong")
    print(json_line(result), flush=True)
