"""The programs that predictions learn from, and those they are reported on: list or try them.

    python -m benchmarks.prediction_programs training --seed 1 --count 200
    python -m benchmarks.prediction_programs known --places node
    python -m benchmarks.prediction_programs reporting --run --places node [--only heat]

The training programs are drawn patterns; the known ones are kernels and applications of this
project. Without --run the cells are listed. With --run each is started once under the default,
unguarded: the table has its seconds, the wall time of the launch and whether its result was right.
Figures for a report need interleaved, guarded runs. Exit code 1 if a run failed.
"""

from __future__ import annotations

import argparse
from typing import Any

from autotune.errors import UsageError
from benchmarks.common import conclude, run_benchmark, table
from benchmarks.mpi_programs import NoCompiler
from benchmarks.program_cells import PLACES, Cell
from benchmarks.reporting_programs import reporting_cells
from benchmarks.training_programs import known_cells, training_plan
from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.mpi.discover import find_library


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("what", choices=("training", "known", "reporting"))
    add("--seed", type=int, default=1, help="training: of the draw")
    add("--count", type=int, default=200, help="training: number of patterns")
    add("--places", nargs="+", choices=PLACES, default=list(PLACES))
    add("--only", metavar="WORD", default="", help="programs whose name contains this")
    add("--run", action="store_true", help="run every cell once")
    add("--testbed", default="testbed", metavar="NAME", help="the testbed that is up")
    add("--mpi", metavar="PREFIX", help="the MPI library, if there are several")
    add("--json", metavar="FILE", help="write the table as JSON")
    return made


def cells(given: argparse.Namespace) -> list[Cell]:
    """The chosen cells; raises :class:`NoCompiler` and UsageError."""
    if given.what == "training":
        found = [program.cell() for program in training_plan(given.seed, given.count)]
    elif given.what == "known":
        found = known_cells()
    else:
        found = reporting_cells(find_library(given.mpi))
    chosen = [c for c in found if c.place in given.places and given.only in c.name]
    if not chosen:
        raise UsageError(
            f"--only {given.only}: no program has this in its name", code="benchmark.fails"
        )
    return chosen


def listed(cell: Cell) -> dict[str, Any]:
    what = " ".join(cell.words) or f"{cell.app}:{cell.input}"
    return {"name": cell.name, "place": cell.place, "ranks": cell.ranks, "program": what}


def tried(cell: Cell, testbed: str, mpi: str | None) -> dict[str, Any]:
    """One run under the default. Raises UsageError and RunnerError."""
    target = cell.target(testbed, mpi)
    with target.runner(guard=False) as runner:
        record = runner.run(target.spec(None))
    right = record.valid and record.verified is True
    row = {"name": cell.name, "place": cell.place, "ranks": cell.ranks}
    row |= {"seconds": f"{record.value_s:.4g}", "wall_s": f"{record.wall_s:.2f}", "right": right}
    row["share"] = ""
    computing = record.extra.get("compute_s")
    if isinstance(computing, float):
        row["share"] = f"{1 - computing / record.value_s:.2f}"
    if not right:
        said = (record.reason or record.stderr_tail).strip().splitlines()
        row["reason"] = said[-1] if said else record.state
    return row


def main() -> int:
    made = parser()
    given = made.parse_args()
    try:
        chosen = cells(given)
        if not given.run:
            table([listed(cell) for cell in chosen])
            return 0
        rows = []
        with MachineLock("shared"):
            for cell in chosen:
                rows.append(tried(cell, given.testbed, given.mpi))
                print(*rows[-1].values(), flush=True)
    except (UsageError, ValueError) as error:
        made.error(str(error))
    except (NoCompiler, RunnerError) as error:
        made.exit(1, f"prediction_programs: {error}\n")
    wrong = [f"{row['name']} {row['place']} {row['ranks']}" for row in rows if not row["right"]]
    return conclude(
        f"{given.what} programs", "every run is right", wrong, {"rows": rows}, given.json
    )


if __name__ == "__main__":
    run_benchmark(main)
