"""The check of launch lines: planted faults that it names, its time, and lines that are faster.

Planted faults are those of ``tests/launch_check/planted.toml``, which was written before the rules:
each must be named by its code, with exactly the line of the list. The time is that of ``autotune
check`` on a C program with two ranks, after one check before. ``--prove`` also runs the command
that each finding about speed gives, ``autotune compare`` of the faulty and the corrected line.

Usage: python -m benchmarks.launch_check [--checks 5] [--prove] [--pairs 8] [--json FILE]
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from benchmarks.common import options, report, run_benchmark, table
from tests.launch_check.planted import FAULTS, findings_of

SOURCE = Path(__file__).with_name("inputs") / "steps.c"
GOAL_NAMED, GOAL_S = 28, 3.0
LIVE = (
    ("binding.one_core", "OMP_NUM_THREADS=2 {openmpi} -n 1 ./openmpi 1 3000000"),
    ("cores.two_ranks", "OMP_NUM_THREADS=1 {mpich} -n 2 -bind-to user:0,0 ./mpich 100 200"),
    (
        "oversubscription.no_yield",
        "OMP_NUM_THREADS=1 {openmpi} -n 4 --host localhost:4 ./openmpi 60 20",
    ),
    ("threads.crowded", "OMP_NUM_THREADS=2 {openmpi} -n 2 --bind-to none ./openmpi 100 100"),
    (
        "threads.waiting",
        "OMP_WAIT_POLICY=active OMP_NUM_THREADS=2 {openmpi} -n 2 --bind-to none ./openmpi 30 100",
    ),
)
"""Faults about speed that a node of two cores can have, as lines of a shell."""


def is_named(fault: dict[str, Any]) -> bool:
    """True if a planted fault is found, and its line is that of the list."""
    finding = findings_of(fault).get(fault["code"])
    return finding is not None and list(finding.corrected_line or ()) == shlex.split(fault["right"])


def launchers() -> dict[str, str]:
    """The launcher of each family under the name that a distribution gives it, or as it is."""
    names = {family: f"mpirun.{family}" for family in ("openmpi", "mpich")}
    return {family: name for family, name in names.items() if shutil.which(name)}


def build(folder: Path) -> dict[str, str]:
    """Compile the program for each family; the launchers of those that have it."""
    built = {}
    for family, launcher in launchers().items():
        compiler = f"mpicc.{family}"
        if shutil.which(compiler):
            words = [compiler, "-O1", "-fopenmp", str(SOURCE), "-o", str(folder / family)]
            subprocess.run(words, check=True)
            built[family] = launcher
    return built


def autotune(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """One command of autotune in ``folder``, with a results database of its own."""
    environment = os.environ | {"AUTOTUNE_STORE": str(folder / "results.db")}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def check(line: str, folder: Path) -> dict[str, Any]:
    """The document of a checked line; raises WorkError if the check fails."""
    words = [sys.executable, "-m", "autotune", "check", "--json", "-", "--", *shlex.split(line)]
    done = autotune(words, folder)
    if done.returncode not in (0, 1) or not done.stdout:
        raise WorkError(f"{line}: {done.stderr[-500:]}", code="benchmark.fails")
    document: dict[str, Any] = json.loads(done.stdout)["launches"][0]
    return document


def times(line: str, folder: Path, checks: int) -> dict[str, float]:
    """Seconds of a check: median of wall time and of CPU time, with all that it starts."""
    check(line, folder)
    wall, cpu = [], []
    for _ in range(checks):
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        check(line, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.monotonic() - start)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"wall (s)": statistics.median(wall), "CPU (s)": statistics.median(cpu)}


def proof(code: str, line: str, folder: Path, pairs: int) -> dict[str, Any]:
    """The comparison of a faulty line with the one that its finding gives.

    autotune measures what differs in a setting; other lines are timed here, in turns. It is faster
    if the 95 % interval of the gain is above 0. Without the guard autotune calls nothing proven, so
    a quiet machine is needed all the same.
    """
    findings = {one["code"]: one for one in check(line, folder)["findings"]}
    finding = findings.get(code)
    if finding is None or finding["corrected_line"] is None:
        return {"code": code, "verdict": "not found"}
    if finding["compare"] is None:
        return {
            "code": code,
            **in_turns(line, shlex.join(finding["corrected_line"]), folder, pairs),
        }
    words = list(finding["compare"])
    at = words.index("autotune")
    more = ["--pairs", str(pairs), "--no-guard", "--no-check", "--json", "-"]
    command = [sys.executable, "-m", "autotune", "compare", *words[at + 2 : at + 4], *more]
    done = autotune(["env", *words[:at], *command, *words[at + 4 :]], folder)
    document = json.loads(done.stdout or "{}")
    if "gain" not in document:
        return {"code": code, "verdict": "failed", "error": done.stderr[-500:]}
    low, _ = document["gain_ci95"] or (None, None)
    verdict = "faster" if low is not None and low > 0 else "undecided"
    return {"code": code, "verdict": verdict, "gain": document["gain"], "line": shlex.join(words)}


def in_turns(first: str, second: str, folder: Path, pairs: int) -> dict[str, Any]:
    """The gain of the second line of a shell over the first, by pairs of runs."""
    variables = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    environment = os.environ | dict.fromkeys(variables, "1")
    ratios = []
    for _ in range(pairs):
        took = []
        for line in (first, second):
            start = time.monotonic()
            subprocess.run(
                ["sh", "-c", line], cwd=folder, env=environment, check=True, capture_output=True
            )
            took.append(time.monotonic() - start)
        ratios.append(took[0] / took[1])
    verdict = "faster" if min(ratios) > 1 else "undecided"
    return {"verdict": verdict, "gain": statistics.median(ratios) - 1}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--checks", type=int, default=5)
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--pairs", type=int, default=8)
    given = parser.parse_args()
    missed = [str(fault["name"]) for fault in FAULTS if not is_named(fault)]
    named = len(FAULTS) - len(missed)
    figures: dict[str, Any] = {"named": named, "planted": len(FAULTS), "goal": GOAL_NAMED}
    print(f"planted faults named with the right line: {named} of {len(FAULTS)} (goal {GOAL_NAMED})")
    for name in missed:
        print(f"  missed: {name}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        built = build(folder)
        if "openmpi" not in built:
            raise WorkError("there is no mpirun.openmpi with mpicc.openmpi", code="benchmark.fails")
        figures["time"] = times(f"{built['openmpi']} -n 2 ./openmpi 20", folder, given.checks)
        took = ", ".join(f"{value:.2f} {name}" for name, value in figures["time"].items())
        print(f"check of a program with two ranks: {took} (goal {GOAL_S:g} s)")
        if given.prove:
            lines = [(c, text.format_map(built)) for c, text in LIVE if _has(text, built)]
            figures["proofs"] = [proof(c, line, folder, given.pairs) for c, line in lines]
            table(
                [
                    {key: f"{one.get(key, '')}" for key in ("code", "verdict", "gain")}
                    for one in figures["proofs"]
                ]
            )
    report("launch_check", figures, given.json)
    return int(named < GOAL_NAMED)


def _has(text: str, built: dict[str, str]) -> bool:
    return all(f"{{{family}}}" not in text or family in built for family in ("openmpi", "mpich"))


if __name__ == "__main__":
    run_benchmark(main)
