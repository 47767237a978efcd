"""Jacobi3D's six variants on two nodes of one core: how over-decomposition hides latency.

    python -m benchmarks.testbed_mate [--shares 0.3 0.5] [--blocks 7] [--trials 30] [--json FILE]

For each share, the benchmark first finds the latency at which flat MPI waits for that share of its
time. Then the tuner searches flat MPI's best eager limit, yielding and buffers at this latency
(``--trials 0``: no search). Every variant runs in blocks of random order against flat MPI under the
default and under the tuned setting; MATE at two factors also runs under flat MPI's setting, which
is not searched again for it. Needs root and a machine without other work; about 12 minutes
for each share.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.space import DEFAULT, Setting
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import ROOT, autotune, report, run_benchmark, table
from benchmarks.jacobi_cases import (
    FACTORS,
    SIDE_BY_SIDE,
    Case,
    CaseRunner,
    Tuned,
    against_flat,
    cases,
    draw,
    measure,
    middle,
    ratio,
    row,
    seconds,
)
from runner import testbed as tb
from runner.guard import cpu_times
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter
from runner.testbed.measure import run_time
from runner.types import RunRecord

NODES, RATE_BPS = 2, 1_000_000_000
GUESSES_S = (0.001, 0.003)
"""Latencies tried first; the result is interpolated on the line through these points."""
SPACE = """\
description = "What flat MPI can do about a network's latency"
library = "openmpi>=4.1"
[parameters.btl_tcp_eager_limit]
levels = ["16k", "32k", "128k", "256k"]
[parameters.btl_tcp_sndbuf]
levels = ["256k", "1M", "4M"]
[parameters.btl_tcp_rcvbuf]
levels = ["256k", "1M", "4M"]
[parameters.mpi_yield_when_idle]
levels = [1]
[parameters.btl_tcp_links]
levels = [2]
[parameters.mpi_event_tick_rate]
levels = [1]
"""
PART, CUT, INFLATED, LINE = 0.7, 0.80, 1.10, 0.05
"""Goals: part of the possible gain, cut of waiting, CPU time of computation and delay line.

The limit of the speed-up is T / (T - waiting) of tuned flat MPI; ``PART`` is of limit - 1.
"""


@dataclass(frozen=True)
class Point:
    """A latency and flat MPI's behaviour at it; CPU shares of one core."""

    latency_s: float
    waiting: float
    line_cpu: float
    irq_cpu: float


def wait_share(record: RunRecord) -> float:
    return float(record.extra["waiting_s"]) / float(record.extra["solver_s"])


def target_here(name: str) -> Target:
    words = TargetRequest(None, "jacobi3d", name, NODES, "testbed", None, None, None, 120)
    return find_target(words)


def probe(name: str, latency_s: float, guard: bool, runs: int = 3) -> Point:
    """Flat MPI under one latency; the testbed stays up with it."""
    tb.down(tb.DEFAULT_NAME)
    found = tb.up(tb.DEFAULT_NAME, NODES, latency_s, RATE_BPS)
    target = target_here(name)
    flat = Case("mpi", NODES, 1, 1)
    own = target.cluster.own_processes
    with Runner(adapter(target.library), guard=guard, own_processes=own) as runner:
        bench = CaseRunner(runner, target)
        bench.run(flat)  # the very first run is an outlier
        line, irq = run_time(found.line.pid), cpu_times().irq_s
        records = [bench.run(flat) for _ in range(runs)]
        # Starting and stopping send little; counting only the solver's time gives a share that is
        # too high.
        solved = sum(float(r.extra["solver_s"]) for r in records) * runs / (runs + bench.rejected)
        line, irq = run_time(found.line.pid) - line, cpu_times().irq_s - irq
    share = statistics.median(wait_share(r) for r in records)
    return Point(latency_s, share, line / solved, irq / solved)


def latency_for(share: float, known: list[Point]) -> float:
    """The latency at which flat MPI waits for ``share`` of its time.

    Waiting over the rest of the time grows in proportion to the latency.
    """
    first, second = sorted(known, key=lambda p: abs(p.waiting - share))[:2]
    x = [p.waiting / (1 - p.waiting) for p in (first, second)]
    slope = (x[1] - x[0]) / (second.latency_s - first.latency_s)
    wanted = share / (1 - share)
    return max(first.latency_s + (wanted - x[0]) / slope, 1e-4)


def known_setting(name: str, text: str) -> tuple[Tuned, dict[str, Any]]:
    """A setting that an earlier search found."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "flat.toml"
        file.write_text(SPACE)
        space = target_here(name).space(str(file))
    setting = space.canonical(Setting.parse(text))
    return Tuned(space, setting), {"setting": str(setting), "status": "given"}


def tune(name: str, trials: int, guard: bool) -> tuple[Tuned, dict[str, Any]]:
    """The tuner's answer for flat MPI: the proven setting, else the best of the search."""
    if not trials:
        return Tuned(), {"status": "not searched"}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "flat.toml"
        file.write_text(SPACE)
        answer = autotune(
            *("search", "--app", "jacobi3d", "--input", name, "--ranks", str(NODES)),
            *("--cluster", "testbed", "--space", str(file), "--strategy", "ga"),
            *("--trials", str(trials), "--store", f"{place}/runs.db"),
            *("--params-file", f"{place}/params.conf", *([] if guard else ["--no-guard"])),
        )
        if not answer.result:
            sys.exit(f"the search of flat MPI failed, exit code {answer.code}: {answer.text}")
        result = answer.result
        proven = (result.get("recommended") or {}).get("setting") or {}
        best = (result.get("best") or {}).get("setting") or {}
        space = target_here(name).space(str(file))
        setting = space.canonical(Setting(proven or best)) if proven or best else DEFAULT
        keys = ("status", "gain", "gain_ci95", "search_runs", "confirmation_runs", "runs_rejected")
        return Tuned(space, setting), {
            "setting": str(setting),
            **{key: result.get(key) for key in keys},
        }


def verdict(case: Case, found: dict[Case, list[RunRecord]], flats: list[Case]) -> dict[str, Any]:
    """A variant against each flat program: speed-up with interval, waiting, computation."""
    line: dict[str, Any] = {"case": case.name}
    for flat in flats:
        value, low, high = ratio(against_flat(found[flat], found[case]))
        line[f"x vs {flat.name}"] = f"{1 / value:.2f} ({1 / high:.2f}..{1 / low:.2f})"
    waits = [middle(found[c], "waiting_s") for c in (flats[-1], case)]
    works = [middle(found[c], "compute_cpu_s") for c in (flats[-1], case)]
    line["waiting"] = f"{waits[1] / waits[0] - 1:+.0%}"
    line["compute CPU"] = f"x{works[1] / works[0]:.2f}"
    return line


def judge(
    share: float, point: Point, found: dict[Case, list[RunRecord]], flat: Case
) -> dict[str, Any]:
    """The best mate case against tuned flat MPI, beside the goals."""
    mates = [case for case in found if case.variant == "mate"]
    best = min(mates, key=lambda c: statistics.median(seconds(found[c])))
    value, low, high = ratio(against_flat(found[flat], found[best]))
    waits = middle(found[best], "waiting_s") / middle(found[flat], "waiting_s")
    works = middle(found[best], "compute_cpu_s") / middle(found[flat], "compute_cpu_s")
    limit = statistics.median(1 / (1 - wait_share(record)) for record in found[flat])
    part = (1 / value - 1) / (limit - 1)
    misses = [
        text
        for text, met in (
            (f"{part:.0%} of the limit's gain < {PART:.0%}", part >= PART),
            (f"waiting cut {1 - waits:.0%} < {CUT:.0%}", 1 - waits >= CUT),
            (f"computation x{works:.2f} > {INFLATED}", works <= INFLATED),
            (
                f"delay line and interrupts {point.line_cpu + point.irq_cpu:.1%} > {LINE:.0%}",
                point.line_cpu + point.irq_cpu <= LINE,
            ),
        )
        if not met
    ]
    return {
        "share": share,
        "latency_s": point.latency_s,
        "flat_waits": round(point.waiting, 3),
        "line_cpu": round(point.line_cpu, 4),
        "irq_cpu": round(point.irq_cpu, 4),
        "best": best.name,
        "speed_up": round(1 / value, 3),
        "interval": (round(1 / high, 3), round(1 / low, 3)),
        "limit": round(limit, 3),
        "part_of_limit": round(part, 3),
        "waiting_cut": round(1 - waits, 3),
        "compute_cpu": round(works, 3),
        "missed": misses or "nothing",
    }


def at_share(share: float, known: list[Point], given: argparse.Namespace) -> dict[str, Any]:
    """All results for one share: latency, tuned flat MPI, all variants, tables and figure."""
    point = probe(given.input, latency_for(share, known), given.guard)
    known.append(point)
    if abs(point.waiting - share) > 0.03:
        point = probe(given.input, latency_for(share, known), given.guard)
    if given.tuned:
        tuned, how = known_setting(given.input, given.tuned)
    else:
        tuned, how = tune(given.input, given.trials, given.guard)
    print(f"\nflat MPI waits {point.waiting:.0%} at {point.latency_s * 1e3:.2f} ms; tuned: {how}")
    every = cases(NODES, 1, given.factors)
    flats = [every[0]]
    if tuned.setting != DEFAULT:
        flats.append(dataclasses.replace(every[0], tuned=True))
        every.insert(1, flats[1])
        mates = [c for c in every if c.variant == "mate" and c.factor in (2, SIDE_BY_SIDE)]
        every += [dataclasses.replace(case, tuned=True) for case in mates]
    target = target_here(given.input)
    own = target.cluster.own_processes
    with Runner(adapter(target.library), guard=given.guard, own_processes=own) as runner:
        bench = CaseRunner(runner, target, tuned)
        found = measure(bench, every, given.blocks, given.minutes)
    table([row(case, found[every[0]], found[case]) for case in every])
    print()
    table([verdict(case, found, flats) for case in every if case not in flats])
    title = f"2 nodes x 1 core, {point.latency_s * 1e3:.1f} ms each way, flat MPI waits {share:.0%}"
    path = given.figures / f"testbed_odf_{round(share * 100)}.svg"
    draw(found, found[flats[-1]], path, title)
    answer = judge(share, point, found, flats[-1]) | {"tuned": how, "rejected": bench.rejected}
    answer["rows"] = {case.name: row(case, found[every[0]], found[case]) for case in every}
    answer["runs"] = {case.name: seconds(records) for case, records in found.items()}
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--input", default="long", help="input of Jacobi3D")
    add("--shares", type=float, nargs="+", default=[0.3, 0.5], help="waiting of flat MPI")
    add("--blocks", type=int, default=7)
    add("--trials", type=int, default=30, help="of the search for flat MPI's setting")
    add("--tuned", metavar="SETTING", help="flat MPI's setting as found before, not searched again")
    add("--factors", type=int, nargs="+", default=FACTORS)
    add("--minutes", type=float, default=8.0, help="for each share: begin no block after that")
    add("--figures", type=Path, default=ROOT / "docs" / "figures", metavar="DIR")
    add("--json", metavar="FILE")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    given = parser.parse_args()
    began = time.monotonic()
    answers = []
    try:
        with MachineLock("exclusive"):
            known = [probe(given.input, latency, given.guard) for latency in GUESSES_S]
            for share in given.shares:
                answers.append(at_share(share, known, given))
    finally:
        tb.down(tb.DEFAULT_NAME)
    print()
    long = ("rows", "runs")
    short = {
        f"at {a['share']:.0%}": {key: value for key, value in a.items() if key not in long}
        for a in answers
    }
    figures = {
        "input": given.input,
        "wall_s": round(time.monotonic() - began),
        "guard": given.guard,
    }
    report("testbed mate", {**figures, **short}, given.json)
    if given.json:
        path = Path(given.json)
        path.write_text(json.dumps({**json.loads(path.read_text()), "all": answers}, indent=2))
    return 0


if __name__ == "__main__":
    run_benchmark(main)
