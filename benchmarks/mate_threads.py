"""Threads and the size of messages (Martin 2018, appendix C): Jacobi3D with messages cut in pieces.

    python -m benchmarks.mate_threads [--input small] [--blocks 7] [--json FILE]

Every face is sent in 1 to 64 pieces: the same bytes in more and smaller messages. Three layouts on
two cores are compared: one process of two workers, two processes of one, and flat MPI (whose
messages are not cut). The variant is "over", in which all faces of all ranks go through MPI, so
that both layouts send the same messages. Messages within a process go through MPI to the process
itself; between nodes they would take another path.

"time/uncut" compares with the layout's own time with whole messages. The rule for a tuner: if
cutting slows the process with more workers first, short messages need few workers per process.
Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from autotune.api.target import find_target
from autotune.targets.request import TargetRequest
from benchmarks.common import report, run_benchmark, table
from benchmarks.jacobi_cases import CaseRunner, against_flat, measure, middle, ratio, seconds
from benchmarks.mate_apps import Layout, flat
from runner.launch import Runner
from runner.mpi.discover import adapter

PIECES = (1, 2, 4, 8, 16, 32, 64)


def main() -> int:
    """Print the table: time over flat MPI's for each number of pieces and workers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--input", default="small")
    add("--cluster", default="local")
    add("--ranks", type=int, default=4, help="ranks of the runtime in all")
    add("--blocks", type=int, default=7)
    add("--minutes", type=float, default=8.0)
    add("--json", metavar="FILE")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    given = parser.parse_args()
    target = find_target(
        TargetRequest(None, "jacobi3d", given.input, 2, given.cluster, None, None, None, 120)
    )
    every = [flat()]
    for workers in (1, 2):
        processes = 2 // workers
        for pieces in PIECES:
            words = ("--variant", "over", "--workers", str(workers), "--split", str(pieces))
            ranks = ("--ranks-per-process", str(given.ranks // processes))
            every.append(Layout(f"{workers}:{pieces}", processes, workers, (*words, *ranks)))
    own = target.cluster.own_processes
    with Runner(adapter(target.library), guard=given.guard, own_processes=own) as runner:
        bench = CaseRunner(runner, target)
        found = measure(bench, every, given.blocks, given.minutes)  # type: ignore[arg-type]
    rows: list[dict[str, Any]] = []
    for layout in every[1:]:
        workers, _, pieces = layout.label.partition(":")
        runs = found[layout]  # type: ignore[index]
        value, low, high = ratio(against_flat(found[every[0]], runs))  # type: ignore[index]
        whole = next(x for x in every if x.label == f"{workers}:1")
        uncut = ratio(against_flat(found[whole], runs))  # type: ignore[index]
        sent = middle(runs, "messages")
        rows.append(
            {
                "workers": workers,
                "pieces": pieces,
                "bytes a message": f"{middle(runs, 'bytes') / sent:.0f}" if sent else "-",
                "solver_s": f"{statistics.median(seconds(runs)):.4f}",
                "time/mpi": f"{value:.2f}",
                "95 %": f"{low:.2f}..{high:.2f}",
                "time/uncut": f"{uncut[0]:.2f}",
                "its 95 %": f"{uncut[1]:.2f}..{uncut[2]:.2f}",
            }
        )
    table(rows)
    report("mate_threads", {"rows": rows, "rejected": bench.rejected}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
