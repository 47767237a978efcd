"""Tasks on one node of many cores: forms, workers, thread levels, queues, edges, priorities.

    python -m benchmarks.many_cores [--cores 16] [--only forms ...] [--blocks 3] [--json FILE]

Each table has command lines of miniGhost, Jacobi3D, the sparse LU or the alignment, with processes
and workers in several proportions. They run in blocks of random order; a launch of the stencils
solves its problem three times and counts the median. The speed-up is over the first line, with its
range over blocks (three are too few for an interval). Needs an otherwise idle node with that many
cores, Open MPI, numpy and mpi4py (the LU: scipy), and nothing of the tuner.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ending import run_benchmark

GHOST = "minighost"
JACOBI = "jacobi3d"
NEAR = "--barrier neighbours --block-order comm_first"
TIMEOUT_S = 60
REPETITIONS = 3
REPEATING = (GHOST, JACOBI)
"""Applications that solve their problem several times."""


@dataclass(frozen=True)
class Line:
    """A command line: the application's module, processes, and its words."""

    name: str
    app: str
    processes: int
    words: str
    metric: str = "solver_s"


def shared(cores: int) -> list[int]:
    """Workers of a process, in the proportions that the cores allow."""
    return [workers for workers in (1, 2, 4, 8, 16, 32, 64) if cores % workers == 0]


def size_for(cores: int) -> str:
    """A grid of 48 x 48 x 96 cells for each core."""
    axes = [48, 48, 96]
    place = 0
    while cores > 1:
        axes[place % 3] *= 2
        cores //= 2
        place += 1
    return "x".join(map(str, axes))


def tables(cores: int) -> dict[str, list[Line]]:
    """The lines of each table; the first one is what the others are compared with."""
    ghost = f"--size {size_for(cores)} --variables 5 --steps 60"
    jacobi = f"--size {size_for(cores)} --iterations 200"
    flat = Line(f"flat MPI, {cores} processes", GHOST, cores, f"{ghost} --prepost")
    plain = Line(f"flat MPI, {cores} processes", JACOBI, cores, f"{jacobi} --variant mpi")
    half = max(1, cores // 4)
    several = [w for w in shared(cores) if w > 1 and w <= cores]
    some = [w for w in several if cores // w >= 2][-2:] or several
    return {
        "forms": [
            flat,
            *(Line(f"threads {cores // w} x {w}", GHOST, cores // w,
                   f"{ghost} --variant threads --workers {w}") for w in several),
            *(Line(f"tpod {cores // w} x {w}, edge {edge}", GHOST, cores // w,
                   f"{ghost} --variant tpod --workers {w} --block-edge {edge} {NEAR}")
              for w in shared(cores) for edge in ("0x24x24", "0x12x12")),
        ],
        "levels": [
            Line(f"{cores // w} x {w}, {messages}, {level}", GHOST, cores // w,
                 f"{ghost} --variant tpod --workers {w} --block-edge 0x12x12 {NEAR} "
                 f"--block-messages {messages} --thread-level {level}")
            for w in some
            for messages in ("block", "face")
            for level in ("multiple", "serialized", "funneled")
        ],
        "queues": [
            Line(f"1 x {w}, edge {edge}, {queue}", GHOST, 1,
                 f"--size 96x96x96 --variables 5 --steps 60 --variant tpod --workers {w} "
                 f"--block-edge {edge} {NEAR} --task-queue {queue}")
            for edge in ("0x24x24", "16", "8")
            for w in sorted({1, half, cores})
            for queue in (("shared",) if w == 1 else ("shared", "private", "stealing"))
        ],
        "ranks": [
            Line(f"{ranks} ranks, edge {edge}", GHOST, ranks,
                 f"--size {size_for(ranks)} --variables 5 --steps 60 --variant tpod "
                 f"--block-edge {edge}")
            for ranks in (2, cores)
            for edge in ("0", "48", "24", "16", "8")
        ],
        "models": [
            plain,
            Line("split phase", JACOBI, cores, f"{jacobi} --variant overlap"),
            *(Line(f"threads {cores // w} x {w}", JACOBI, cores // w,
                   f"{jacobi} --variant threads --workers {w} --ranks-per-process {w}")
              for w in some),
            *(Line(f"MATE {cores // w} x {w}, {odf} ranks a worker", JACOBI, cores // w,
                   f"{jacobi} --variant mate --workers {w} --ranks-per-process {w * odf}")
              for w in (1, *some) for odf in (1, 4)),
            *(Line(f"Tarragon {cores // w} x {w}, {odf} tasks a worker", JACOBI, cores // w,
                   f"{jacobi} --variant tarragon --priority edges --workers {w} "
                   f"--threads {'single' if w == 1 else 'service'} "
                   f"--ranks-per-process {w * odf}")
              for w in (1, *some) for odf in (1, 4)),
            *(Line(f"TPOD {cores // w} x {w}, edge 0x24x24", JACOBI, cores // w,
                   f"{jacobi} --variant tpod --workers {w} --block-edge 0x24x24 {NEAR}")
              for w in (1, *some)),
        ],
        "lu": [
            Line(f"{matrix}, {n} processes, {form}", "sparse_lu", n,
                 f"--input {matrix} --variant {form}", "seconds")
            for matrix in ("poisson", "band")
            for n in powers(cores)
            for form in ("mpi", "tarragon", "tarragon --priority edges")
        ],
        "alignment": [
            Line(f"{n} processes, {form}", "needleman_wunsch", n,
                 f"--input default --rows 256 --columns 256 --variant {form}", "seconds")
            for n in powers(cores)[-2:]
            for form in ("mpi", "async", "panel", "panel --priority edges",
                         "panel --priority wavefront", "block", "block --priority wavefront")
        ],
    }  # fmt: skip


def powers(cores: int) -> list[int]:
    """1, 2, 4, ... up to the cores."""
    return [2**n for n in range(cores.bit_length()) if 2**n <= cores]


def command(line: Line, cores: int) -> list[str]:
    """The line as it is started; a process alone on its core is bound to it."""
    threaded = "--workers" in line.words and "--workers 1 " not in f"{line.words} "
    binding = ["--bind-to", "core" if alone(cores) and not threaded else "none"]
    slots = ["--host", f"localhost:{cores}"]
    return [
        "mpirun", "--allow-run-as-root", *slots, *binding, "-n", str(line.processes),
        sys.executable, "-m", f"runner.apps.{line.app}", *line.words.split(),
        *(("--repetitions", str(REPETITIONS)) if line.app in REPEATING else ()),
    ]  # fmt: skip


def alone(cores: int) -> bool:
    """Whether each CPU is a core of its own: not one of two threads of a core."""
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    try:
        text = siblings.read_text().strip()
    except OSError:
        return False
    return text.isdigit() and cores <= len(os.sched_getaffinity(0))


def run(line: Line, cores: int) -> dict[str, Any] | str:
    """What the program printed, or why it did not."""
    try:
        done = subprocess.run(
            command(line, cores), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end within {TIMEOUT_S} s"
    said = [text for text in done.stdout.splitlines() if text.startswith("{")]
    if done.returncode or not said:
        lines = [text for text in done.stderr.splitlines() if "error" in text.lower()]
        return " ".join(lines)[:300] or f"exit code {done.returncode}"
    result: dict[str, Any] = json.loads(said[-1])
    return result if result["verified"] is not False else "wrong result"


def measured(lines: list[Line], cores: int, blocks: int, dice: random.Random) -> dict[str, Any]:
    """Seconds and the last output of each line, or its error."""
    found: dict[str, Any] = {line.name: {"seconds": []} for line in lines}
    for block in range(blocks):
        for line in dice.sample(lines, len(lines)):
            own = found[line.name]
            if "error" in own:
                continue
            result = run(line, cores)
            if isinstance(result, str):
                own["error"] = result
                continue
            own["seconds"].append(result[line.metric])
            own["said"] = result
        print(f"  block {block + 1} of {blocks} done", file=sys.stderr, flush=True)
    return found


def show(name: str, lines: list[Line], found: dict[str, Any]) -> None:
    """Print one table."""
    print(f"\n{name}\n{'line':46} {'seconds':>9} {'speed-up':>9}  range over blocks")
    first = found[lines[0].name]["seconds"]
    for line in lines:
        own = found[line.name]
        seconds = own["seconds"]
        if not seconds or "error" in own:
            print(f"{line.name:46} {own.get('error', 'not run')}")
            continue
        middle = statistics.median(seconds)
        gains = [a / b for a, b in zip(first, seconds, strict=False)]
        text = f"{min(gains):.2f} .. {max(gains):.2f}" if gains else ""
        gain = f"{statistics.median(first) / middle:9.2f}" if first else " " * 9
        print(f"{line.name:46} {middle:9.4f} {gain}  {text}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--cores", type=int, default=cores, help="default: those of this process")
    parser.add_argument("--only", nargs="+", choices=tuple(tables(cores)), default=None)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1e9, metavar="S",
                        help="begin no table after so many seconds")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="all figures")
    given = parser.parse_args()
    begin, every = time.monotonic(), {}
    dice = random.Random(1)
    for name, lines in tables(given.cores).items():
        if given.only and name not in given.only:
            continue
        if time.monotonic() - begin > given.limit:
            print(f"\n{name}: not begun, --limit is over")
            continue
        every[name] = measured(lines, given.cores, given.blocks, dice)
        show(name, lines, every[name])
        if given.json:
            Path(given.json).write_text(json.dumps(every, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
