"""The smallest useful task of MATE, of C over MPI and of charm4py: METG(50 %) of a stencil.

    python -m benchmarks.mate_metg [--rounds 12] [--charm4py PYTHON] [--json FILE]
    python -m benchmarks.mate_metg --nodes 2 4 8 [--latency-ms 0.3 1 3] [--rounds 6]

The program is a stencil in one dimension, 8 points wide: each task needs the tasks of the iteration
before of its point and of the point's two neighbours. A task's body is a chain of dependent
arithmetic. Efficiency is the time of the bodies alone over wall time x workers. METG(50 %) is the
shortest body at which it is still a half. The time of the bodies is the length of the chain times
one shared reference: the smallest time of a step, measured once for all programs with the same
machine code that MATE's bodies use.

In every round each program is started once and runs every length of the chain; the order of the
programs changes from round to round. Every run's values are compared with those of a plain loop, to
the last bit. Figures are minimum, quartiles and median over the rounds; a program's round in which
the longest tasks were more than 10 % slower than in its best round is dropped, and counted.

Edges: "inside" by memory or dependencies, "boundary" by messages between processes, "messages" by a
message for every edge. --charm4py names a Python that has charm4py:
    python -m venv PLACE && PLACE/bin/pip install charm4py
Needs a machine without other work.

With --nodes the programs of two processes run with one process on each node of a testbed instead
(root), for each number of nodes and each latency, with granularities from a fiftieth of the latency
to five times as long. Nodes share cores if there are more of them than cores; then efficiency
counts the cores, and one node computes while another waits, which no network of real nodes allows.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import UsageError, WorkError
from benchmarks.common import ROOT, options, report, run_benchmark, table
from benchmarks.harness.bed import Bed
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.launches import Place
from benchmarks.metg import WIDTH, start_value
from benchmarks.metg.granularity import (
    ABOVE,
    BELOW,
    efficiency,
    figure,
    lengths,
    lengths_for,
    metg,
)
from benchmarks.metg.programs import Program, far_programs, programs
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter
from runner.runtimes.core import kernels

CASE_S = 0.010
"""Wall time in seconds that one length should take in one round."""
LEAST, MOST = 20, 200_000
"""Bounds of the number of iterations."""
DISTURBED = 1.1
"""A round counts if its longest tasks took at most this times the program's best time for them."""
REFERENCE_STEPS = 1_000_000
QUICK_LENGTHS = 5
NODES = (2, 4, 8)
"""Numbers of nodes that divide the points."""
Figures = dict[str, Any]


@dataclass
class Sweep:
    """One program's runs: iterations of each length, and wall times in seconds by round."""

    program: Program
    iterations: list[int]
    wall_s: list[list[float]] = field(default_factory=list)

    @property
    def kept(self) -> list[list[float]]:
        """Wall times of the rounds in which the longest tasks were about as fast as ever.

        They show whether the machine did other work: no cost of a runtime is seen in them.
        """
        best = min(walls[-1] for walls in self.wall_s)
        return [walls for walls in self.wall_s if walls[-1] <= DISTURBED * best]

    def efficiencies(self, granularity_us: Sequence[float]) -> list[list[float]]:
        """Efficiency by kept round and length."""
        return [self._efficiency(granularity_us, walls) for walls in self.kept]

    def best(self, granularity_us: Sequence[float]) -> list[float]:
        """Efficiency of the smallest wall time of each length, of all rounds."""
        walls = [min(walls) for walls in zip(*self.wall_s, strict=True)]
        return self._efficiency(granularity_us, walls)

    def _efficiency(self, granularity_us: Sequence[float], walls: Sequence[float]) -> list[float]:
        cores = self.program.cores
        cases = zip(granularity_us, self.iterations, walls, strict=True)
        return [efficiency(g, iterations, wall, cores) for g, iterations, wall in cases]


def quartiles(samples: Sequence[float]) -> dict[str, float]:
    """Minimum, quartiles and median; each is one of the samples, so infinities are possible."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    names = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75}
    return {name: ordered[round(share * last)] for name, share in names.items()}


class Stencils:
    """Starts the programs with the same lengths, and checks what they compute."""

    def __init__(self, place: Place, bench: Bench, steps: list[int]) -> None:
        self.steps = steps
        self._place, self._bench = place, bench
        self._expected: dict[tuple[int, int], list[float]] = {}

    def run(self, program: Program, iterations: Sequence[int]) -> list[float]:
        """Wall times in seconds, one for each length; WorkError if a value is wrong."""
        cases = list(zip(self.steps, iterations, strict=True))
        line = self._line(program, [f"{steps}:{count}" for steps, count in cases])
        for case, values in zip(cases, line["values"], strict=True):
            if values != self._values(*case):
                raise WorkError(
                    f"{program.name}: wrong values after {case[1]} tasks of {case[0]} steps: "
                    f"{values}; expected {self._values(*case)}",
                    code="benchmark.values",
                )
        walls: list[float] = line["wall_s"]
        return walls

    def _line(self, program: Program, cases: list[str]) -> dict[str, Any]:
        """What the program prints; WorkError with its last words if it fails."""
        words = [*program.words, *cases]
        if program.launched:
            spec = self._place.program(words, program.processes, program.workers)
            return dict(self._bench.run(spec, program.name).extra)
        # It starts its own processes.
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
        )
        lines = [text for text in done.stdout.splitlines() if text.startswith("{")]
        if done.returncode or not lines:
            raise WorkError(f"{program.name}: {done.stderr[-500:]}", code="benchmark.fails")
        return dict(json.loads(lines[-1]))

    def _values(self, steps: int, iterations: int) -> list[float]:
        """The points' values after all tasks, from a plain loop."""
        if (steps, iterations) not in self._expected:
            values = np.array([start_value(point) for point in range(WIDTH)])
            sizes = np.array([WIDTH, steps, iterations], dtype=np.int64)
            code = kernels.load("benchmarks.metg.kernels")
            code.bind("serial", values, np.zeros(WIDTH), sizes)()
            self._expected[steps, iterations] = values.tolist()
        return self._expected[steps, iterations]


def step_us(seconds: float) -> float:
    """Microseconds of one step of the chain: the smallest of repeated measurements."""
    chain = kernels.load("benchmarks.metg.kernels").function("chain")
    found: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(found) < 10:
        begin = time.perf_counter()
        value = chain(0.3, REFERENCE_STEPS)
        found.append(time.perf_counter() - begin)
        if not 0 < value < 1:
            raise WorkError(
                f"the chain ended at {value}; expected a number between 0 and 1",
                code="benchmark.fails",
            )
    return min(found) / REFERENCE_STEPS * 1e6


def iterations_for(walls: Sequence[float], tried: Sequence[int], case_s: float) -> list[int]:
    """Iterations that take ``case_s`` seconds for each length, after a trial of ``tried``."""
    cases = zip(walls, tried, strict=True)
    return [min(MOST, max(LEAST, round(count * case_s / wall))) for wall, count in cases]


def calibrated(bench: Stencils, program: Program, case_s: float) -> Sweep:
    """A program with the iterations of each length; its caches of compiled code are filled.

    There are two trials: in the first one, of few iterations, the start of a graph takes longer
    than its tasks.
    """
    iterations = [LEAST] * len(bench.steps)
    for _ in range(2):
        iterations = iterations_for(bench.run(program, iterations), iterations, case_s)
    return Sweep(program, iterations)


def measure(
    bench: Stencils, rows: Sequence[Program], rounds: int, minutes: float, case_s: float
) -> list[Sweep]:
    """All programs in every round; no round begins that would end after ``minutes``."""
    sweeps = {program: calibrated(bench, program, case_s) for program in rows}

    def run(program: Program, block: int) -> list[float]:
        return bench.run(program, sweeps[program].iterations)

    for program, walls in interleaved(rows, run, rounds, 0, minutes).items():
        sweeps[program].wall_s = walls
    return [*sweeps.values()]


def print_efficiencies(
    steps: Sequence[int], granularity_us: Sequence[float], sweeps: Sequence[Sweep], letters: str
) -> None:
    """Median efficiencies in percent: one line for each length, one column for each program."""
    print("efficiency in percent (medians); columns as in the table below")
    print(f"{'steps':>6} {'us':>7} " + "".join(f"{letter:>4}" for letter in letters))
    every = [list(zip(*s.efficiencies(granularity_us), strict=True)) for s in sweeps]
    for n, (count, granularity) in enumerate(zip(steps, granularity_us, strict=True)):
        medians = [quartiles(found[n])["median"] for found in every]
        text = "".join(f"{100 * value:4.0f}" for value in medians)
        print(f"{count:6} {granularity:7.3g} {text}")


def summary(sweep: Sweep, granularity_us: Sequence[float]) -> dict[str, Any]:
    """METG over the rounds in microseconds, that of the smallest times, and whether the goal holds.

    0 means below the shortest length, infinity above the longest one.
    """
    found = [metg(granularity_us, values) for values in sweep.efficiencies(granularity_us)]
    row: dict[str, Any] = quartiles(found)
    row["of_smallest"] = metg(granularity_us, sweep.best(granularity_us))
    if sweep.program.goal_us is not None:
        row |= {"goal": sweep.program.goal_us, "met": row["median"] <= sweep.program.goal_us}
    return row


def metg_row(letter: str, sweep: Sweep, granularity_us: Sequence[float]) -> dict[str, Any]:
    """A program's row: METG(50 %) with its quartiles, and that of the smallest times ("best")."""
    own = summary(sweep, granularity_us)
    names = {"min": "min", "q1": "q1", "median": "median", "q3": "q3", "best": "of_smallest"}
    cells = {name: figure(own[key], granularity_us) for name, key in names.items()}
    goal = f"{own['goal']:.2f}" if "goal" in own else ""
    return {"": letter, "processes x workers, edges": sweep.program.name, **cells, "goal": goal}


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A summary for JSON, which has no infinities."""
    words = {BELOW: "below", ABOVE: "above"}
    numbers = {k: words.get(v, round(v, 4)) for k, v in row.items() if k != "met"}
    return {**row, **numbers}


def chosen(every: list[Program], text: str | None) -> list[Program]:
    """The rows that contain ``text``; UsageError if there is none."""
    found = [p for p in every if text is None or text in p.name]
    if not found:
        names = "\n".join(p.name for p in every)
        raise UsageError(
            f"--only {text}: no program has that in its row; expected one of\n{names}",
            code="benchmark.program",
        )
    return found


def require_charm4py(interpreter: str | None) -> None:
    """UsageError if this Python, if any is named, cannot be started or does not have charm4py."""
    if interpreter is None:
        return
    try:
        line = [interpreter, "-c", "import charm4py"]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        failed, said = True, f"{error}"
    if failed:
        raise UsageError(
            f"--charm4py {interpreter}: it cannot import charm4py ({said}); expected a Python that "
            "has it, such as PLACE/bin/python after python -m venv PLACE and PLACE/bin/pip install "
            "charm4py",
            code="benchmark.charm4py",
        )


def show(
    rows: Sequence[Program], sweeps: Sequence[Sweep], steps: list[int], step: float
) -> Figures:
    """Print efficiencies and METG of the programs; the figures for the JSON document.

    ``step``: microseconds of one step of the chain.
    """
    granularity = [step * count for count in steps]
    letters = {s.program.name: chr(ord("A") + n) for n, s in enumerate(sweeps)}
    if sweeps:
        print_efficiencies(steps, granularity, sweeps, "".join(letters.values()))
    print("\nMETG(50 %) in us over the rounds; best: of the smallest time of each length")
    if sweeps:
        table([metg_row(letters[s.program.name], s, granularity) for s in sweeps])
    for program in rows:
        if program.missing:
            print(f"{program.name}: not measured: {program.missing}")
    dropped = {s.program.name: len(s.wall_s) - len(s.kept) for s in sweeps}
    if any(dropped.values()):
        listed = ", ".join(f"{letters[name]} {count}" for name, count in dropped.items() if count)
        print(f"rounds dropped, of {len(sweeps[0].wall_s)}: {listed}")
    print(flush=True)
    return {
        "rounds": len(sweeps[0].wall_s) if sweeps else 0,
        "granularity_us": [round(g, 5) for g in granularity],
        "metg_us": {s.program.name: as_json(summary(s, granularity)) for s in sweeps},
        "dropped": dropped,
        "not_measured": {p.name: p.missing for p in rows if p.missing},
        "runs": {s.program.name: {"iterations": s.iterations, "wall_s": s.wall_s} for s in sweeps},
    }


def on_this_node(given: argparse.Namespace, step: float, case_s: float) -> Figures:
    """The figures of all programs on this machine."""
    place = Place.of(mpi=given.mpi)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        guard = not (given.guard or given.quick)
        runner = stack.enter_context(Runner(adapter(place.library), guard=guard))
        rows = chosen(programs(place.library, scratch, given.charm4py), given.only)
        steps = lengths(step, QUICK_LENGTHS if given.quick else None)
        stencils = Stencils(place, Bench(runner), steps)
        sweeps = measure(
            stencils, [p for p in rows if not p.missing], given.rounds, given.minutes, case_s
        )
    return show(rows, sweeps, steps, step)


def between_nodes(given: argparse.Namespace, step: float, case_s: float) -> Figures:
    """The figures of the programs of several processes for each number of nodes and latency."""
    found: Figures = {}
    with Bed() as bed, tempfile.TemporaryDirectory() as scratch:
        for nodes, latency_ms in itertools.product(given.nodes, given.latency_ms):
            place = Place.of(bed.up(nodes, latency_ms), given.mpi)
            count = QUICK_LENGTHS if given.quick else None
            steps = lengths_for(step, 1e3 * latency_ms, count)
            rows = chosen(far_programs(place.library, Path(scratch), nodes), given.only)
            runner = Runner(
                adapter(place.library),
                guard=not (given.guard or given.quick),
                own_processes=place.own_processes,
            )
            with runner:
                sweeps = measure(
                    Stencils(place, Bench(runner), steps),
                    [p for p in rows if not p.missing],
                    given.rounds,
                    given.minutes,
                    case_s,
                )
            title = f"{nodes} nodes, {latency_ms:g} ms"
            print(f"{title}, on {min(nodes, len(os.sched_getaffinity(0)))} cores")
            found[title] = show(rows, sweeps, steps, step)
    return found


def main() -> None:
    """Measure, print the tables and write the figures."""
    parser = options(__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=12)
    add("--minutes", type=float, default=5.5, help="begin no round that would end after that")
    add("--only", metavar="TEXT", help="only programs whose row has this text")
    add("--nodes", type=int, nargs="+", choices=NODES, default=[], help="of testbeds; 2, 4, 8")
    add("--latency-ms", type=float, nargs="+", default=[0.3, 1.0, 3.0], help="of these, each way")
    add("--charm4py", metavar="PYTHON", help="a Python that has charm4py")
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--quick", action="store_true", help="one short round of few lengths, not for figures")
    given = parser.parse_args()
    if given.rounds < 1:
        raise UsageError(f"--rounds {given.rounds}: expected 1 or more", code="benchmark.rounds")
    if min(given.latency_ms) <= 0:
        raise UsageError("--latency-ms: expected above 0", code="benchmark.network")
    library = Place.of(mpi=given.mpi).library
    require_charm4py(given.charm4py)
    if given.quick:
        given.rounds = 1
    case_s = CASE_S / 5 if given.quick else CASE_S
    with contextlib.nullcontext() if given.quick else MachineLock("exclusive"):
        step = step_us(0.05 if given.quick else 1.0)
        found = (between_nodes if given.nodes else on_this_node)(given, step, case_s)
    figures = {"library": f"{library.family} {library.version}", "step_ns": round(1e3 * step, 4)}
    report("mate_metg", figures | ({"places": found} if given.nodes else found), given.json)


if __name__ == "__main__":
    run_benchmark(main)
