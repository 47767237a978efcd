"""The cost of the MATE runtime: regions, messages, parallel efficiency, idle workers, start-up.

    python -m benchmarks.mate_cost [--repeats 5] [--json FILE]

Regions and kernels are measured in one process without MPI (w workers, r ranks), messages between
two processes under mpirun, beside the same pattern in C and with mpi4py. A message "added" is
MATE's time less C's of the same round. In process, MATE hands over without MPI and is compared with
a message of a C process to itself. "waiting" is the CPU time of a process's waiting worker, in
percent of a core, from 1 ms after the wait began. "start-up added" is the wall time of a process
that runs an empty job of one rank with the native core less that of the one with the Python core
before it. Every round measures every row once; the table has minimum, quartiles and median over
the rounds, and the goals set for the runtime. CPU time of regions is in the JSON file. Rows of a
core that does not run on this processor are left out. Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, UsageError
from benchmarks.common import report, run_benchmark
from benchmarks.mate_regions import (
    RegionCase,
    calibrated,
    cores,
    efficiency,
    kernel,
    parts_of_a_region,
    plain_efficiency,
    region_cases,
    regions,
)
from benchmarks.mate_startup import idle_share, startup_s
from benchmarks.mpi_programs import NoCompiler, Programs, compiled_for, python, quartiles
from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mpi.discover import find_library
from runner.mpi.library import Library

SOURCE = Path(__file__).parent / "metg" / "messages.c"
GOALS = {
    "region, compiled body, 1 w, 1 r": 0.10,
    "region, compiled body, 1 w, 8 r": 0.10,
    "region, compiled body, 2 w, 8 r": 0.08,
    "region, Python body, 1 w, 1 r": 0.5,
    "region, Python body, 1 w, 8 r": 0.5,
    "added: compiled region, between": 0.15,
    "added: compiled region, in process": 0.10,
    "waiting for nothing": 2.0,
    "waiting for MPI": 2.0,
    "start-up added": 20.0,
    "efficiency of 2 workers": 95.0,
}
"""Microseconds; percent of a core; milliseconds; percent: as the rows say."""
AT_LEAST = frozenset({"efficiency of 2 workers"})
IN_C = {"between": "between", "itself": "itself", "in process": "itself"}
"""Destination -> the destination of the C program that it is compared with."""
NAME, COLUMN = 43, 7
REGION_S = 0.1
STARTS = 20
PYTHON_CORE = ", --core python"
Rows = dict[str, list[float]]


class Cost:
    """The rows, filled round by round; ``quick`` makes every part short."""

    def __init__(self, launched: Programs, library: Library, place: Path, quick: bool) -> None:
        self.rows: Rows = defaultdict(list)
        self.cpu_us: Rows = defaultdict(list)
        self.missing: dict[str, str] = {}
        self._launched = launched
        self._quick = quick
        self._workers = min(2, len(os.sched_getaffinity(0)))
        self._cases: dict[RegionCase, int] = {
            case: calibrated(case, REGION_S / 10 if quick else REGION_S)
            for case in region_cases(self._workers)
        }
        self._wait_s = 0.2 if quick else 2.0
        self._rounds = 50 if quick else 1000
        self._kernel = kernel()
        self._kernels = 80 if quick else 4000
        self._messages_in_c: str | None = None
        try:
            self._messages_in_c = str(compiled_for(library, SOURCE, place))
        except NoCompiler as error:
            self.missing["messages in C"] = f"{error}"

    def one_round(self) -> None:
        """Measure every row once."""
        for case, executions in self._cases.items():
            found = regions(case, executions)
            self.rows[_of(case.name, case.core)].append(found["wall"])
            self.cpu_us[_of(case.name, case.core)].append(found["cpu"])
        self._messages()
        if self._workers > 1:
            for core in cores():
                share = idle_share(core, self._wait_s)
                self.rows[_of("waiting for nothing", core)].append(100 * share)
                reached = efficiency(core, self._kernel, self._kernels)
                self.rows[_of("efficiency of 2 workers", core)].append(100 * reached)
            plain = plain_efficiency(self._kernel, self._kernels)
            self.rows["efficiency of 2 plain threads"].append(100 * plain)

    def _messages(self) -> None:
        in_c: dict[str, list[float]] = {}
        if self._messages_in_c is not None:
            words = [self._messages_in_c, f"{20 * self._rounds}", "3"]
            in_c, _ = self._launched.run(words, 2)
        own = python("benchmarks.mate_messages", "--rounds", f"{self._rounds}", "--repeats", "3")
        line, _ = self._launched.run([*own, "--wait", f"{self._wait_s}"], 2)
        for to, found in in_c.items():
            self.rows[f"message, C over MPI, {to}"].append(min(found))
        for name, found in line["message_us"].items():
            way, kind, *to = name.split(", ")
            row = _of(", ".join([kind, *to]), way) if to else name
            self.rows[f"message, {row}"].append(min(found))
            if to and in_c:
                added = min(found) - min(in_c[IN_C[to[0]]])
                self.rows[_of(f"added: {kind}, {to[0]}", way)].append(added)
        for core, share in line["waiting"].items():
            self.rows[_of("waiting for MPI", core)].append(100 * share)

    def starts(self, count: int) -> None:
        """Start-up in milliseconds of each core, alternately."""
        for core in cores():
            startup_s(core)
        for _ in range(count):
            found = {core: 1e3 * startup_s(core) for core in cores()}
            for core, spent in found.items():
                self.rows[_of("start-up", core)].append(spent)
            if "native" in found:
                self.rows["start-up added"].append(found["native"] - found["python"])


def _of(name: str, core: str) -> str:
    """The native core's rows have the plain name, those of the Python core name it."""
    return name if core == "native" else f"{name}{PYTHON_CORE}"


UNITS = {"waiting": "% of a core", "efficiency": "%", "start-up": "ms"}


def unit(name: str) -> str:
    """The unit of a row, by its first words."""
    return next((text for words, text in UNITS.items() if name.startswith(words)), "us")


def print_table(rows: Rows) -> None:
    """Every row with minimum, quartiles, median and goal, 80 columns wide."""
    head = "".join(f"{name:>{COLUMN}}" for name in ("min", "q1", "median", "q3"))
    for shown in dict.fromkeys(map(unit, rows)):
        print(f"\n{shown:{NAME}}{head}   goal")
        # Those of one kind beside each other, in the order in which they were measured.
        kinds = list(dict.fromkeys(_kind(name) for name in rows))
        for name, samples in sorted(rows.items(), key=lambda row: kinds.index(_kind(row[0]))):
            if unit(name) == shown:
                figures = "".join(f"{text(v):>{COLUMN}}" for v in quartiles(samples).values())
                sign = ">=" if name in AT_LEAST else "<="
                goal = f" {sign} {GOALS[name]:g}" if name in GOALS else ""
                label = name.replace(PYTHON_CORE, " *")
                print(f"{label:{NAME}}{figures}{goal}".rstrip())
    print("\n* with --core python")


def _kind(name: str) -> str:
    """The first word: ``region``, ``message``, ``added:``, ..."""
    return name.split()[0].rstrip(",")


def text(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def summary(name: str, samples: list[float]) -> dict[str, Any]:
    """A row for JSON; ``met`` is judged by the median."""
    found: dict[str, Any] = {"unit": unit(name), **quartiles(samples), "samples": samples}
    if name in GOALS:
        met = found["median"] >= GOALS[name] if name in AT_LEAST else found["median"] <= GOALS[name]
        found |= {"goal": GOALS[name], "met": met}
    return found


def run(given: argparse.Namespace) -> None:
    """Measure all rounds, print the table and write the figures."""
    if given.repeats < 1:
        raise UsageError(f"--repeats {given.repeats}: expected 1 or more", code="benchmark.fails")
    library = find_library(given.mpi)
    with contextlib.ExitStack() as stack:
        if not given.quick:
            stack.enter_context(MachineLock("exclusive"))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        launched = stack.enter_context(Programs(library))
        cost = Cost(launched, library, place, given.quick)
        for _ in range(1 if given.quick else given.repeats):
            cost.one_round()
        cost.starts(1 if given.quick else STARTS)
    print_table(cost.rows)
    for name, reason in cost.missing.items():
        print(f"{name}: not measured: {reason}")
    print()
    figures = {
        "fingerprint": describe_machine().fingerprint,
        "library": f"{library.family} {library.version}",
        "rows": {name: summary(name, samples) for name, samples in cost.rows.items()},
        "region_cpu_us": {name: quartiles(samples) for name, samples in cost.cpu_us.items()},
        "parts_of_a_region_us": parts_of_a_region(),
        "not_measured": cost.missing,
    }
    report("mate_cost", figures, given.json)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--repeats", type=int, default=5, help="rounds")
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--quick", action="store_true", help="one short round, not for figures")
    add("--json", metavar="FILE")
    try:
        run(parser.parse_args())
    except (AutotuneError, RunnerError) as error:
        print(f"mate_cost: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
