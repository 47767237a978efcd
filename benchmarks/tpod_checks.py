"""Blocks as tasks, checked: what Barrett et al. show, and questions of ours; a table for each.

    python -m benchmarks.tpod_checks [--place node|testbed] [--testbed NAME] [--only edges ...]

A table has the lines of one check on miniGhost, on two cores. They run in blocks of random order,
guard on; the speed-up is over the first line, with a 95 % interval. A line also says how long its
tasks waited for messages, summed over the tasks of a process and as multiple of the run (flat MPI:
how long it waited); and on a testbed how many bytes were on their way between the nodes, at most
and on average, as its delay line counts them. On the testbed every line has the larger eager limit
of TCP. Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.checks import Check, held, rows_of, run_checks, valid, words
from benchmarks.common import run_benchmark
from benchmarks.program_cells import Place
from runner.launch import Runner
from runner.testbed import delay_line, state
from runner.tpod.order import ORDERS
from runner.types import LaunchSpec

EDGES = ("0", "48", "32", "24", "16", "8")
"""Cubes that divide the grid; 0: one block for each process."""
SIZE = "--input brief"
FLAT = words("minighost", "flat MPI", f"{SIZE} --prepost")
NEIGHBOURS = "--barrier neighbours"


def edges(key: str, claim: str, how: str) -> Check:
    """The grind time over the edge of a block."""
    return Check(
        key,
        claim,
        (
            FLAT,
            *(
                words(
                    "minighost", f"edge {edge}", f"{SIZE} --variant tpod --block-edge {edge} {how}"
                )
                for edge in EDGES
            ),
        ),
    )


def choices(key: str, claim: str, switch: str, values: tuple[str, ...], edge: str) -> Check:
    """The values of one switch, the first one first."""
    usual = f"{SIZE} --variant tpod --block-edge {edge} {NEIGHBOURS}"
    return Check(
        key,
        claim,
        tuple(words("minighost", value, f"{usual} {switch} {value}") for value in values),
    )


CHECKS = (
    edges("edges", "U-shape of the grind time over the edge: random order, global barrier", ""),
    edges("edges-neighbours", "the same without a barrier, blocks with messages first",
          f"{NEIGHBOURS} --block-order comm_first"),
    choices("orders", "the order in which the blocks of a step begin", "--block-order",
            tuple(ORDERS), "0x16x16"),
    choices("messages", "a message for each block's face, or for each of the process",
            "--block-messages", ("block", "face"), "0x16x16"),
    choices("calls", "order of sends and receives", "--order", ("ISIR", "SR", "ISR", "SIR"),
            "0x16x16"),
)  # fmt: skip


@dataclass(frozen=True)
class Counted:
    """One run: its seconds, what it printed, and bytes on their way at once (0: not counted)."""

    seconds: float
    said: dict[str, Any]
    most: int
    mean: float


def counted(directory: Path | None) -> Callable[[Runner, LaunchSpec], Counted]:
    """A run with the counts of the delay line that lies in this directory."""

    def run(runner: Runner, spec: LaunchSpec) -> Counted:
        before = None
        if directory is not None:
            delay_line.forget_most(directory)
            before = delay_line.read_counters(directory)
        record = valid(runner, spec)
        lines = [line for line in record.stdout_tail.splitlines() if line.startswith("{")]
        said = json.loads(lines[-1])
        most, mean = 0, 0.0
        if directory is not None and before is not None:
            after = delay_line.read_counters(directory)
            most = after.flying_max
            mean = 1e-9 * (after.flying_byte_ns - before.flying_byte_ns) / said["solver_s"]
        return Counted(float(record.value_s), said, most, mean)

    return run


def rows_for(check: Check, place: Place, given: argparse.Namespace) -> list[dict[str, Any]]:
    far = place == "testbed"
    directory = Path(state.find_testbed(given.testbed).directory) if far else None
    results = held(check, place, given, counted(directory))
    rows = rows_of(check, [[run.seconds for run in line] for line in results])
    for row, line in zip(rows, results, strict=True):
        said = line[0].said
        row["grind ns"] = f"{statistics.median(run.said['grind_ns'] for run in line):.3f}"
        row["messages"] = said["messages"]
        waits = [run.said.get("task_waiting_s", run.said["waiting_s"]) for run in line]
        ratios = [wait / run.seconds for wait, run in zip(waits, line, strict=True)]
        row["waits"] = f"{statistics.median(ratios):.2f}"
        if far:
            row["most KiB"] = f"{statistics.median(run.most for run in line) / 1024:.0f}"
            row["mean KiB"] = f"{statistics.median(run.mean for run in line) / 1024:.1f}"
    return rows


def main() -> int:
    return run_checks("tpod_checks", __doc__, CHECKS, rows_for)


if __name__ == "__main__":
    run_benchmark(main)
