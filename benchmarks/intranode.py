"""What ranks of a node gain that steal chunks, beside what the machine's memory can do.

    python -m benchmarks.intranode [--ranks 15] [--blocks 2] [--only speed ...] [--json FILE]

Each program of ``runner.apps.cab`` varies helpers or chunks within one start, in random order; the
programs of a part are started in random order in each block.  A time is the median over all batches
of all blocks; a speed-up is found in each block and the median of those is shown, with the least
and the largest.  One core is left free by default.  Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.ending import run_benchmark
from runner.machine import describe_machine

ROOT = Path(__file__).parents[1]
KIB, MIB = 1 << 10, 1 << 20
TRIES = 3
TIME_LIMIT_S = 120
PARTS = ("saturation", "speed", "overhead", "chunks")
SIZES = (64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB)
"""Messages whose best chunk is looked for."""
CHUNKS = tuple(KIB << n for n in range(2, 10))
"""Bytes of a chunk, 4 KiB to 512 KiB."""
OWN, SHARED = "copies, own buffers,", "copies, one buffer,"
"""The probe: each rank copies as much, or its part."""
GOAL_SHARE, GOAL_US = 0.8, 0.2
"""Part of the probe's speed-up with one helper, and the cost of a message that nobody steals."""


@dataclass(frozen=True)
class Start:
    """One start of a program."""

    part: str
    name: str
    words: tuple[str, ...]
    ranks: int


def start(part: str, name: str, ranks: int, program: str, **options: Any) -> Start:
    words = ["--program", program]
    for option, value in options.items():
        words.append("--" + option.replace("_", "-"))
        if value is not True:
            words.append(listed(value) if isinstance(value, tuple) else str(value))
    return Start(part, name, tuple(words), ranks)


def listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def starts(ranks: int) -> list[Start]:
    """All starts of a block."""
    workers = tuple(range(1, ranks + 1))
    helpers = tuple(range(ranks))
    found = [
        start("saturation", "own buffers", ranks, "saturation",
              size=32 * MIB, times=3, rounds=2, helpers=workers),
    ]  # fmt: skip
    cut: dict[str, Any] = {"helpers": helpers, "chunks": (16 * KIB, 64 * KIB), "rounds": 3}
    for name, size in (("1 MiB", MIB), ("8 MiB", 8 * MIB)):
        for probe, share in ((OWN, {}), (SHARED, {"share": True})):
            found.append(
                start("speed", f"{probe} {name}", ranks, "saturation",
                      size=size, rounds=3, helpers=workers, **share),
            )  # fmt: skip
        rows = size // (4 * KIB)
        found += [
            start(
                "speed", f"pack {name}, rows of 4 KiB", ranks, "pack", size=size, rows=rows, **cut
            ),
            start("speed", f"accumulate {name}", ranks, "accumulate", size=size, **cut),
        ]
    found += [
        start("speed", "pack 1 MiB, rows of 8 B", ranks, "pack",
              size=MIB, rows=MIB // 8, spread=8, times=16, **cut),
        start("speed", "message 1 MiB", ranks, "pingpong", size=MIB, **cut),
    ]  # fmt: skip
    both = (0, ranks - 1)
    for size in (8, 32 * KIB, 64 * KIB):
        found.append(
            start("overhead", f"{size} bytes", ranks, "pingpong",
                  size=size, stealers=0, helpers=both, times=1000, rounds=9),
        )  # fmt: skip
    for size in SIZES:
        chunks = tuple(chunk for chunk in CHUNKS if 2 * chunk <= size and size // chunk <= 1024)
        found.append(
            start("chunks", f"{size}", ranks, "pingpong", size=size, chunks=chunks, rounds=3,
                  steal_threshold=0, helpers=tuple(dict.fromkeys((0, 1, ranks - 1)))),
        )  # fmt: skip
    return found


def mpirun(ranks: int) -> list[str]:
    """The launcher with its options; the ranks pin themselves."""
    beside = Path(sys.executable).with_name("mpirun")
    launcher = str(beside) if beside.exists() else shutil.which("mpirun")
    if launcher is None:
        sys.exit("no mpirun next to this Python or on PATH: install Open MPI")
    return [launcher, "--bind-to", "none", "--oversubscribe", "-n", str(ranks)]


def run(one: Start, pin: bool) -> dict[str, Any]:
    """The result of a start; ends the benchmark if there is none after some tries."""
    program = [sys.executable, "-m", "runner.apps.cab", *one.words, *["--pin"] * pin]
    program += ["--steal-config", "none"]
    command = [*mpirun(one.ranks), *program]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    said = ""
    for _ in range(TRIES):
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  check=False, timeout=TIME_LIMIT_S)  # fmt: skip
        except subprocess.TimeoutExpired:
            said = f"not finished after {TIME_LIMIT_S} s"
            continue
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            result: dict[str, Any] = json.loads(lines[-1])
            if result["verified"]:
                return result
        said = done.stdout[-1000:] + done.stderr[-2000:]
    sys.exit(f"{' '.join(command)} failed {TRIES} times:\n{said}")


# Tables.

Blocks = Sequence[Mapping[str, Any]]
"""The results of a start in each block."""


def times_of(blocks: Blocks) -> dict[tuple[int, int], float]:
    """Median microseconds of each cell (workers, chunk) over the batches of all blocks."""
    runs: dict[tuple[int, int], list[float]] = {}
    for block in blocks:
        for cell in block["cells"]:
            runs.setdefault((cell["workers"], cell["chunk"]), []).extend(cell["runs_us"])
    return {key: statistics.median(found) for key, found in runs.items()}


def speed_ups(blocks: Blocks) -> dict[tuple[int, int], list[float]]:
    """Speed-up in each block of each cell (helpers, chunk) over the fewest workers."""
    found: dict[tuple[int, int], list[float]] = {}
    for block in blocks:
        least = min(cell["workers"] for cell in block["cells"])
        alone = [cell["mb_per_s"] for cell in block["cells"] if cell["workers"] == least]
        for cell in block["cells"]:
            helpers = cell["workers"] - least
            key = helpers, cell["chunk"] if helpers else 0
            found.setdefault(key, []).append(cell["mb_per_s"] / statistics.median(alone))
    return found


def best_chunks(ups: Mapping[tuple[int, int], list[float]]) -> dict[int, tuple[int, list[float]]]:
    """For each number of helpers the chunk with the largest median, and its speed-ups."""
    best: dict[int, tuple[int, list[float]]] = {}
    for (helpers, chunk), values in ups.items():
        if helpers not in best or statistics.median(values) > statistics.median(best[helpers][1]):
            best[helpers] = chunk, values
    return dict(sorted(best.items()))


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """A title and rows with the same keys as an aligned table."""
    print(f"\n{title}")
    lines = [list(rows[0]), *([f"{value}" for value in row.values()] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    sys.stdout.flush()


def saturation(results: Mapping[str, Blocks]) -> dict[str, Any]:
    """The machine's limit over the number of ranks that copy their own buffers."""
    rates: dict[int, list[float]] = {}
    for block in results["own buffers"]:
        for cell in block["cells"]:
            rates.setdefault(cell["workers"], []).append(cell["mb_per_s"])
    found = {workers: statistics.median(values) for workers, values in rates.items()}
    one = found[min(found)]
    show("saturation: each rank copies its own 32 MiB; a byte that is read and written counts once",
         [{"ranks": n, "GB/s": f"{rate / 1e3:.2f}", "speed-up": f"{rate / one:.2f}",
           "of ideal": f"{100 * rate / one / n:.0f} %"} for n, rate in found.items()])  # fmt: skip
    number = statistics.median_low(block["saturation"] for block in results["own buffers"])
    print(f"saturation number: {number}")
    return {"mb_per_s": found, "saturation": number}


def speed(results: Mapping[str, Blocks]) -> dict[str, Any]:
    """Speed-ups over the number of helpers beside the probe's of the same block."""
    every: dict[str, Any] = {}
    for size in ("1 MiB", "8 MiB"):
        best = {name: best_chunks(speed_ups(results[name])) for name in results if size in name}
        rows = []
        for helpers in next(iter(best.values())):
            row: dict[str, Any] = {"helpers": helpers}
            for name, found in best.items():
                chunk, values = found[helpers]
                text = f"{statistics.median(values):.2f} ({min(values):.2f} .. {max(values):.2f})"
                cut = helpers and not name.startswith("copies")
                row[name] = text + (f" {chunk // KIB}K" if cut else "")
            rows.append(row)
        show(f"speed-up over no helper, {size}: median (least .. largest) of the blocks, and the "
             "better chunk", rows)  # fmt: skip
        for name, found in best.items():
            if not name.startswith("copies"):
                every[name] = _goal(name, found, best[f"{OWN} {size}"], best[f"{SHARED} {size}"])
        every[f"speed-ups {size}"] = best
    return every


def _goal(name: str, *ups: Mapping[int, tuple[int, list[float]]]) -> dict[str, float]:
    """Print what one helper gains as a part of what the probes gain."""
    found, own, shared = ups
    most = max(found, key=lambda helpers: statistics.median(found[helpers][1]))
    text = f"{name}: best {statistics.median(found[most][1]):.2f} with {most} helpers"
    parts: dict[str, float] = {"best_helpers": most}
    if 1 in found:
        for probe, other in (("own", own), ("one", shared)):
            pairs = zip(found[1][1], other[1][1], strict=True)
            parts[probe] = statistics.median(mine / theirs for mine, theirs in pairs)
        verdict = "reached" if parts["own"] >= GOAL_SHARE else "missed"
        text += (
            f"; one helper: {100 * parts['own']:.0f} % of the speed-up of copies of own buffers, "
            f"{100 * parts['one']:.0f} % of one buffer; goal {100 * GOAL_SHARE:.0f} %: {verdict}"
        )
    print(text)
    return parts


def overhead(results: Mapping[str, Blocks]) -> dict[str, Any]:
    """What a message costs more where all others look for chunks and may take none."""
    rows, found = [], {}
    for name, blocks in results.items():
        pairs = []
        for block in blocks:
            off, on = block["cells"]
            pairs += [b - a for a, b in zip(off["runs_us"], on["runs_us"], strict=True)]
        base = statistics.median(us for block in blocks for us in block["cells"][0]["runs_us"])
        low, _, high = statistics.quantiles(pairs, n=4)
        middle = statistics.median(pairs)
        rows.append({"message": name, "us without": f"{base:.2f}", "overhead us": f"{middle:.3f}",
                     "quartiles": f"{low:.3f} .. {high:.3f}",
                     "goal 0.2 us": "reached" if middle <= GOAL_US else "missed"})  # fmt: skip
        found[name] = {"us": base, "overhead_us": middle, "pairs_us": pairs}
    show("overhead of a message of which nothing is stolen (64 KiB: it is cut in 16 KiB)", rows)
    return found


def chunks(results: Mapping[str, Blocks]) -> dict[str, Any]:
    """The best chunk of each size of message, with one helper and with all."""
    found: dict[str, Any] = {}
    cells = {int(size): times_of(blocks) for size, blocks in results.items()}
    every = sorted({workers for times in cells.values() for workers, _ in times if workers})
    for helpers in every:
        rows = []
        for size, times in sorted(cells.items()):
            own = {chunk: us for (workers, chunk), us in times.items() if workers == helpers}
            alone = next(us for (workers, _), us in times.items() if workers == 0)
            best = min(own, key=lambda chunk: own[chunk])
            near = [chunk for chunk, us in own.items() if us <= 1.03 * own[best]]
            row: dict[str, Any] = {"message KiB": size // KIB, "alone": f"{alone:.1f}"}
            row |= {f"{c // KIB}": f"{own[c]:.1f}" if c in own else "" for c in CHUNKS}
            row |= {"best": f"{best // KIB}", "speed-up": f"{alone / own[best]:.2f}",
                    "within 3 %": listed(c // KIB for c in near)}  # fmt: skip
            rows.append(row)
            found[f"{size} bytes, {helpers} helpers"] = {
                "alone_us": alone, "us": own, "best": best, "near": near,
            }  # fmt: skip
        show(f"us a message over KiB of a chunk, {helpers} helpers", rows)
    return found


SUMMARIES = {"saturation": saturation, "speed": speed, "overhead": overhead, "chunks": chunks}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    machine = describe_machine()
    # A control group may allow fewer cores than are seen; then no rank is pinned to one of them.
    allowed = machine.cores < machine.hardware_threads / 2
    cores = machine.cores if allowed else machine.hardware_threads
    parser.add_argument("--ranks", type=int, default=max(cores - 1, 2))
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART",
                        help=f"of {', '.join(PARTS)}; default: all")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write all raw figures")
    given = parser.parse_args()
    began = time.monotonic()
    plan = [one for one in starts(given.ranks) if one.part in given.only]
    pin = given.ranks <= cores and not allowed
    print(f"{given.ranks} ranks{' pinned' * pin}, {machine.cpu_model}: {machine.cores} cores, "
          f"{machine.hardware_threads} threads, {machine.numa_nodes} NUMA nodes, "
          f"caches in KiB {({k: v // KIB for k, v in machine.caches.items()})}")  # fmt: skip
    # The first start compiles the library's code.
    run(start("", "", given.ranks, "pingpong", size=8, times=10, rounds=1), pin)
    results: dict[str, dict[str, list[dict[str, Any]]]] = {part: {} for part in given.only}
    order = random.Random(given.seed)
    for block in range(given.blocks):
        # Programs that are compared run in one minute.
        for part in order.sample(list(given.only), len(given.only)):
            own = [one for one in plan if one.part == part]
            for one in order.sample(own, len(own)):
                results[part].setdefault(one.name, []).append(run(one, pin))
        print(f"block {block + 1} of {given.blocks}: {time.monotonic() - began:.0f} s", flush=True)
    summaries = {}
    for part in given.only:
        wanted = [one.name for one in plan if one.part == part]
        summaries[part] = SUMMARIES[part]({name: results[part][name] for name in wanted})
    if given.json:
        data = {
            "benchmark": "intranode",
            "date": f"{datetime.date.today()}",
            "machine": asdict(machine) | {"hostname": ""},
            "ranks": given.ranks,
            "pinned": pin,
            "blocks": given.blocks,
            "seconds": time.monotonic() - began,
            "summaries": summaries,
            "results": results,
        }
        Path(given.json).write_text(json.dumps(data) + "\n")
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
