"""The heat equation of the runtime's README, with Python regions and with compiled ones.

    python -m benchmarks.mate_heat [--rounds 9] [--json FILE]

Both programs are taken from the README as they stand; only the number of steps is changed. A time
is that of one step of all parts: the wall time of a run of many steps, less that of a run of few,
divided by the difference of the steps, so that starting and compiling do not count. All cases take
turns.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import ROOT, report, run_benchmark, table
from benchmarks.mpi_programs import Programs
from runner.lock import MachineLock
from runner.mpi.discover import find_library

README = ROOT / "runner" / "mate" / "README.md"
FEW = 100
"""The steps of the README's program."""


@dataclass(frozen=True)
class Case:
    """One form of the program on one layout; ``more``: steps added in the long run."""

    name: str
    compiled: bool
    core: str
    processes: int
    workers: int
    more: int

    def words(self, program: Path) -> list[str]:
        ranks = 8 // self.processes
        options = [f"--workers={self.workers}", f"--ranks-per-process={ranks}"]
        return [sys.executable, str(program), *options, f"--core={self.core}"]


CASES = [
    Case(f"{name}, {processes} x {workers}", compiled, core, processes, workers, more)
    for name, compiled, core, more in (
        ("Python regions, --core python", False, "python", 5_000),
        ("Python regions", False, "native", 5_000),
        ("compiled regions", True, "native", 100_000),
    )
    for processes, workers in ((2, 1), (1, 2))
]


def example(compiled: bool, steps: int = FEW) -> str:
    """The README's program, with ``steps`` steps.

    ``compiled``: with the state and the regions of its second part.
    """
    text = README.read_text(encoding="utf-8")
    whole, regions = (block.split("```")[0] for block in text.split("```python\n")[1:3])
    if compiled:
        start, end = whole.index("class Part:"), whole.index("async def main")
        whole = whole[:start] + regions + "\n\n" + whole[end:]
    given = f"STEPS = 4000, {FEW}"
    if given not in whole:
        sys.exit(f"{README.name}: the program has no line with {given!r}")
    return whole.replace(given, f"STEPS = 4000, {steps}")


def seconds(programs: Programs, case: Case, program: Path) -> float:
    """Wall time of a run."""
    line, environment = programs.mpi(case.words(program), case.processes)
    began = time.perf_counter()
    subprocess.run(line, env=environment, check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rounds", type=int, default=9)
    add("--json", metavar="FILE")
    given = parser.parse_args()
    found: dict[Case, list[float]] = {case: [] for case in CASES}
    with (
        MachineLock("exclusive"),
        tempfile.TemporaryDirectory() as place,
        Programs(find_library(None)) as programs,
    ):
        files = {}
        for case in CASES:
            for steps in (FEW, FEW + case.more):
                file = Path(place) / f"heat_{case.compiled}_{steps}.py"
                file.write_text(example(case.compiled, steps), encoding="utf-8")
                files[case, steps] = file
            seconds(programs, case, files[case, FEW])  # compiles
        for _ in range(given.rounds):
            for case in CASES:
                few, many = (seconds(programs, case, files[case, FEW + n]) for n in (0, case.more))
                found[case].append(1e6 * (many - few) / case.more)
    medians = {case: statistics.median(times) for case, times in found.items()}
    lines = [
        {"program": case.name, "step, us": f"{medians[case]:.2f}", "least": f"{min(times):.2f}"}
        for case, times in found.items()
    ]
    table(lines)
    print()
    figures = {"rounds": given.rounds, "step_us": {c.name: t for c, t in found.items()}}
    report("mate heat", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
