"""A claim: command lines of a table, run in interleaved blocks, and what they show.

    python -m benchmarks.claim NAME [--only TABLE ...] [--blocks N] [--keep FILE] [--json FILE]

The lines of a table run once in every block, in random order, under the machine lock and with the
guard. A run that is not verified, or has foreign load, does not count. Speed-ups are over the first
line of the table, from the ratios within the blocks, with 95 % intervals. With --keep the runs go
to a file, and the same command goes on where it stopped. ``benchmarks/claims`` has the claims;
--list prints the command lines of one.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from benchmarks.common import commit, conclude, run_benchmark, table
from benchmarks.harness.bench import Bench, RunLog, interleaved
from benchmarks.harness.figures import (
    NO_INTERVAL,
    require_same,
    rows_of,
    seconds,
    slow_lines,
    speedup,
)
from benchmarks.harness.launches import Place
from benchmarks.harness.table import Claim, Table, names, read_claim
from runner.launch import Runner
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mpi.discover import adapter
from runner.types import LaunchSpec, RunRecord


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("name", choices=names(), metavar="NAME", help=", ".join(names()))
    add("--only", nargs="+", metavar="TABLE", help="tables by name")
    add("--lines", nargs="+", metavar="TEXT", help="the first line, and those with such a text")
    add("--blocks", type=int, help="default: the claim's")
    add("--minutes", type=float, help="of a table: begin no block that would end after that")
    add("--seed", type=int, default=1, help="of the order in the blocks")
    add("--cores", type=int, help="default: those of this process")
    add(
        "--cluster", default="local", help="local, a testbed that is up, or none (needs numpy only)"
    )
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--list", action="store_true", help="print the command lines, run nothing")
    add("--keep", type=Path, metavar="FILE", help="runs; the same command goes on from there")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    return parser


def selection(arguments: argparse.Namespace) -> Claim:
    """The claim with the tables and lines that are wanted; raises UsageError if there are none."""
    cores = arguments.cores or len(os.sched_getaffinity(0))
    claim = read_claim(arguments.name, {"cores": cores})
    tables = [one for one in claim.tables if not arguments.only or one.name in arguments.only]
    if arguments.lines:
        tables = [
            dataclasses.replace(
                one,
                lines=tuple(
                    line for n, line in enumerate(one.lines)
                    if n == 0 or any(text in line.name for text in arguments.lines)
                ),
            )
            for one in tables
        ]  # fmt: skip
    blocks = claim.blocks if arguments.blocks is None else arguments.blocks
    if not tables or blocks < 1:
        known = ", ".join(one.name for one in claim.tables)
        raise UsageError(
            f"nothing to run: --only takes {known}, --blocks 1 or more", code="benchmark.claim"
        )
    return dataclasses.replace(claim, tables=tuple(tables), blocks=blocks)


def measure(
    one: Table,
    specs: list[LaunchSpec],
    bench: Bench,
    run_log: RunLog,
    arguments: argparse.Namespace,
) -> list[list[RunRecord]]:
    """The runs of each line, one in each block."""

    def run(number: int, block: int) -> RunRecord:
        name = f"{one.name}: {one.lines[number].name}"
        return run_log.run(f"{name}, block {block}", lambda: bench.run(specs[number], name))

    run_log.run(f"{one.name}, first", lambda: bench.run(specs[0], one.name))  # It is an outlier.
    records = interleaved(
        range(len(specs)), run, arguments.blocks, arguments.seed, arguments.minutes
    )
    return [records[number] for number in range(len(specs))]


def run(claim: Claim, arguments: argparse.Namespace) -> int:
    """Measure all tables, print and write them; returns 1 if a bound is broken."""
    place = Place.of("" if arguments.cluster == "none" else arguments.cluster, arguments.mpi)
    every: dict[str, Any] = {}
    slow: list[str] = []
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        specs = {
            one.name: [place.launch(line, scratch) for line in one.lines] for one in claim.tables
        }
        if arguments.list:
            for name, launches in specs.items():
                print(f"{name}:")
                for spec in launches:
                    print("  ", shlex.join(adapter(place.library).command(spec, Path())))
            return 0
        lines = f"{[one.lines for one in claim.tables]}".encode()
        identity = {
            "claim": claim.name, "lines": hashlib.sha256(lines).hexdigest()[:16],
            "commit": commit(), "fingerprint": describe_machine().fingerprint,
            "library": f"{place.library.family} {place.library.version}", "cluster": place.cluster,
        }  # fmt: skip
        run_log = RunLog(arguments.keep, identity)
        stack.enter_context(MachineLock("exclusive"))
        runner = Runner(
            adapter(place.library), guard=arguments.guard, own_processes=place.own_processes
        )
        bench = Bench(stack.enter_context(runner))
        for one in claim.tables:
            records = measure(one, specs[one.name], bench, run_log, arguments)
            require_same(one, records)
            rows = rows_of(one, records)
            print(f"\n{one.name}")
            table(rows)
            sys.stdout.flush()
            slow += slow_lines(one, records)
            every[one.name] = {
                "rows": rows,
                "speed-ups": {
                    line.name: dataclasses.asdict(speedup(seconds(records[0]), seconds(own)))
                    for line, own in zip(one.lines, records, strict=True)
                },
                "runs": {
                    line.name: [{**r.extra, "value_s": r.value_s} for r in own]
                    for line, own in zip(one.lines, records, strict=True)
                },
            }
    print(f"{NO_INTERVAL}\n" if claim.blocks < 6 else "")
    bounds = {one.name: one.slowest for one in claim.tables if one.slowest}
    figures = {
        "title": claim.title,
        **identity,
        "blocks": arguments.blocks,
        "guard": arguments.guard,
    }
    figures |= {"rejected": bench.rejected, "tables": every}
    bound = f"time over that of the first line at most {bounds}" if bounds else "none"
    return conclude(claim.name, bound, slow, figures, arguments.json)


def main() -> int:
    arguments = options().parse_args()
    claim = selection(arguments)
    arguments.blocks = claim.blocks
    return run(claim, arguments)


if __name__ == "__main__":
    run_benchmark(main)
