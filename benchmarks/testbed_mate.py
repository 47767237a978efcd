"""Jacobi3D's variants on two nodes of one core: how over-decomposition hides latency.

    python -m benchmarks.testbed_mate [--shares 0.3 0.5] [--blocks 7] [--trials 30] [--json FILE]

For each share, the benchmark first finds the latency at which flat MPI waits for that share of its
time. Then the tuner searches flat MPI's best eager limit, yielding and buffers at this latency
(``--trials 0``: no search). Every variant runs in blocks of random order against flat MPI under the
default and under the tuned setting. The other variants have the eager limit with which the space
of TCP begins (4 MiB), and flat MPI's search tries it; MATE at two factors also runs under flat
MPI's setting, which is not searched again for it. Needs root and a machine without other work;
about 12 minutes for each share.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.space import DEFAULT, Setting, Space
from benchmarks.common import autotune, options, report, run_benchmark, table
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.figures import middle, seconds, speedup
from benchmarks.harness.launches import Place, on_target
from benchmarks.models import EAGER
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
FACTORS = (1, 2, 4, 8, 16)
SIDE_BY_SIDE = 4
"""The over-decomposition factor (and number of tiles) in the comparison of all variants."""
SPACE = """\
description = "What flat MPI can do about a network's latency"
library = "openmpi>=4.1"
[parameters.btl_tcp_eager_limit]
levels = ["16k", "32k", "128k", "256k", "1M", "4M"]
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
POLLING = "mpi_event_tick_rate"
"""How often TCP is polled does not depend on over-decomposition: all variants have flat MPI's."""
PART, CUT, INFLATED, LINE = 0.7, 0.80, 1.10, 0.05
"""Goals: part of the possible gain, cut of waiting, CPU time of computation and delay line.

The limit of the speed-up is T / (T - waiting + line) of tuned flat MPI: where nothing waits, the
last node's core still carries the delay line and its interrupts, which flat MPI does not miss while
it waits. ``PART`` is of limit - 1. The limit without the line is reported beside it.
"""


@dataclass(frozen=True)
class Case:
    """A variant with so many ranks for each core, or tiles; ``tuned``: under flat MPI's setting."""

    variant: str
    factor: int = 1
    tuned: bool = False

    @property
    def name(self) -> str:
        factor = "" if self.variant in ("mpi", "threads") else f" {self.factor}"
        return self.variant + factor + " tuned" * self.tuned

    @property
    def words(self) -> tuple[str, ...]:
        words = ["--variant", self.variant]
        words += ["--workers", "1"] if self.variant not in ("mpi", "overlap") else []
        if self.variant not in ("mpi", "threads"):
            words += ["--ranks-per-process", str(self.factor)]
        return tuple(words)

    def setting(self, tuned: Setting) -> Setting:
        """What it runs under."""
        if self.tuned or self.variant == "mpi":
            return tuned if self.tuned else DEFAULT
        polling = {name: value for name, value in tuned.items() if name == POLLING}
        return EAGER.with_values(Setting(polling))


FLAT = Case("mpi")


def cases(factors: Sequence[int], tuned: bool) -> list[Case]:
    """Flat MPI first; the factor of the side-by-side comparison is always included."""
    ranged = [
        Case(variant, factor)
        for factor in sorted({*factors, SIDE_BY_SIDE})
        for variant in ("over", "barrier", "mate")
    ]
    under = [FLAT, *(Case("mate", n) for n in (2, SIDE_BY_SIDE) if Case("mate", n) in ranged)]
    also = [Case(one.variant, one.factor, tuned=True) for one in under] if tuned else []
    return [FLAT, Case("overlap", SIDE_BY_SIDE), Case("threads"), *ranged, *also]


@dataclass(frozen=True)
class Point:
    """A latency and flat MPI's behaviour at it; CPU shares of one core."""

    latency_s: float
    waiting: float
    line_cpu: float
    irq_cpu: float


def wait_share(record: RunRecord) -> float:
    return float(record.extra["waiting_s"]) / float(record.extra["solver_s"])


class Sight:
    """The program on the testbed that is up."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.place = Place.of("testbed", given.mpi)
        self.target = self.place.target("jacobi3d", given.input, NODES)
        launcher = adapter(self.place.library)
        self.runner = Runner(
            launcher, guard=not given.guard, own_processes=self.place.own_processes
        )
        self.bench = Bench(self.runner)

    def run(self, case: Case, space: Space | None = None, tuned: Setting = DEFAULT) -> RunRecord:
        setting = case.setting(tuned)
        spec = on_target(self.target, case.words, NODES, 1, space, setting)
        return self.bench.run(spec, case.name)


def probe(latency_s: float, given: argparse.Namespace, runs: int = 3) -> Point:
    """Flat MPI under one latency; the testbed stays up with it."""
    tb.down(tb.DEFAULT_NAME)
    found = tb.up(tb.DEFAULT_NAME, NODES, latency_s, RATE_BPS)
    sight = Sight(given)
    with sight.runner:
        sight.run(FLAT)  # the very first run is an outlier
        before = sight.bench.rejected
        line, irq = run_time(found.line.pid), cpu_times().irq_s
        records = [sight.run(FLAT) for _ in range(runs)]
        # Starting and stopping send little; counting only the solver's time gives a share that is
        # too high.
        solved = sum(float(r.extra["solver_s"]) for r in records)
        solved *= 1 + (sight.bench.rejected - before) / runs
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


def tune(file: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The tuner's answer for flat MPI; ``setting`` is the proven one, else the best it saw."""
    if given.tuned or not given.trials:
        named = dict(Setting.parse(given.tuned)) if given.tuned else {}
        return {"setting": named, "status": "given" if named else "not searched"}
    answer = autotune(
        *("search", "--app", "jacobi3d", "--input", given.input, "--ranks", str(NODES)),
        *("--cluster", "testbed", "--space", str(file), "--strategy", "ga"),
        *("--trials", str(given.trials), "--store", f"{file.parent}/runs.db"),
        *("--params-file", f"{file.parent}/params.conf", *given.guard),
        *(("--mpi", given.mpi) if given.mpi else ()),
    )
    if not answer.result:
        sys.exit(f"the search of flat MPI failed, exit code {answer.code}: {answer.text}")
    result = answer.result
    proven = (result.get("recommended") or {}).get("setting") or {}
    best = (result.get("best") or {}).get("setting") or {}
    keys = ("status", "gain", "gain_ci95", "search_runs", "confirmation_runs", "runs_rejected")
    return {"setting": proven or best, **{key: result.get(key) for key in keys}}


def row(case: Case, found: Mapping[Case, list[RunRecord]], flats: list[Case]) -> dict[str, Any]:
    """A variant against each flat program: speed-up with interval, waiting, computation."""
    own, last = found[case], found[flats[-1]]
    return {
        "case": case.name,
        "solver_s": f"{statistics.median(seconds(own)):.4f}",
        **{f"over {f.name}": str(speedup(seconds(found[f]), seconds(own))) for f in flats},
        "waiting_s": f"{middle(own, 'waiting_s'):.3f}",
        "waiting": f"{middle(own, 'waiting_s') / middle(last, 'waiting_s') - 1:+.0%}",
        "compute CPU": f"x{middle(own, 'compute_cpu_s') / middle(last, 'compute_cpu_s'):.2f}",
    }


def limit_of(waiting: float, line: float) -> float:
    """The largest speed-up of a program that waits for a share of its time.

    ``line``: the delay line's share of the core that it runs on, in the same time. Where it takes
    all of the waiting, nothing can be gained, and the limit is just above 1.
    """
    return 1 / (1 - max(waiting - line, 1e-3))


def judge(point: Point, found: Mapping[Case, list[RunRecord]], flat: Case) -> dict[str, Any]:
    """The best mate case against tuned flat MPI, beside the goals."""
    mates = [case for case in found if case.variant == "mate"]
    best = min(mates, key=lambda c: statistics.median(seconds(found[c])))
    gain = speedup(seconds(found[flat]), seconds(found[best]))
    waits = middle(found[best], "waiting_s") / middle(found[flat], "waiting_s")
    works = middle(found[best], "compute_cpu_s") / middle(found[flat], "compute_cpu_s")
    other = point.line_cpu + point.irq_cpu
    waiting = statistics.median(wait_share(record) for record in found[flat])
    limit, plain = limit_of(waiting, other), limit_of(waiting, 0.0)
    part = (gain.value - 1) / (limit - 1)
    goals = {
        f"{part:.0%} of the limit's gain < {PART:.0%}": part >= PART,
        f"waiting cut {1 - waits:.0%} < {CUT:.0%}": 1 - waits >= CUT,
        f"computation x{works:.2f} > {INFLATED}": works <= INFLATED,
        f"delay line and interrupts {other:.1%} > {LINE:.0%}": other <= LINE,
    }
    return {
        "latency_s": point.latency_s,
        "flat_waits": round(point.waiting, 3),
        "line_cpu": round(point.line_cpu, 4),
        "irq_cpu": round(point.irq_cpu, 4),
        "best": best.name,
        "speed_up": str(gain),
        "limit": round(limit, 3),
        "part_of_limit": round(part, 3),
        "limit_without_line": round(plain, 3),
        "part_without_line": round((gain.value - 1) / (plain - 1), 3),
        "waiting_cut": round(1 - waits, 3),
        "compute_cpu": round(works, 3),
        "missed": [words for words, met in goals.items() if not met] or "nothing",
    }


def at_share(share: float, known: list[Point], given: argparse.Namespace) -> dict[str, Any]:
    """All results for one share: latency, tuned flat MPI, all variants."""
    point = probe(latency_for(share, known), given)
    known.append(point)
    if abs(point.waiting - share) > 0.03:
        point = probe(latency_for(share, known), given)
    sight = Sight(given)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "flat.toml"
        file.write_text(SPACE)
        how = tune(file, given)
        space = sight.target.space(str(file))
    tuned = space.canonical(Setting(how["setting"])) if how["setting"] else DEFAULT
    print(f"\nflat MPI waits {point.waiting:.0%} at {point.latency_s * 1e3:.2f} ms; tuned: {how}")
    every = cases(given.factors, tuned != DEFAULT)
    flats = [case for case in every if case.variant == "mpi"]
    with sight.runner:
        sight.run(FLAT)
        found = interleaved(
            every, lambda case, block: sight.run(case, space, tuned), given.blocks, 0, given.minutes
        )
    rows = [row(case, found, flats) for case in every]
    table(rows)
    answer = {"share": share, **judge(point, found, flats[-1]), "tuned": how, "rows": rows}
    runs = {case.name: seconds(records) for case, records in found.items()}
    return answer | {"rejected": sight.bench.rejected, "runs": runs}


def main() -> int:
    parser = options(__doc__)
    add = parser.add_argument
    add("--input", default="long", help="input of Jacobi3D")
    add("--shares", type=float, nargs="+", default=[0.3, 0.5], help="waiting of flat MPI")
    add("--blocks", type=int, default=7)
    add("--trials", type=int, default=30, help="of the search for flat MPI's setting")
    add("--tuned", metavar="SETTING", help="flat MPI's setting as found before, not searched again")
    add("--factors", type=int, nargs="+", default=FACTORS)
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--minutes", type=float, default=8.0, help="for each share: begin no block after that")
    given = parser.parse_args()
    answers = []
    try:
        with MachineLock("exclusive"):
            known = [probe(latency, given) for latency in GUESSES_S]
            answers = [at_share(share, known, given) for share in given.shares]
    finally:
        tb.down(tb.DEFAULT_NAME)
    print()
    report("testbed mate", {"input": given.input, "shares": answers}, given.json)
    for answer in answers:
        print({k: v for k, v in answer.items() if k not in ("rows", "runs")})
    return 0


if __name__ == "__main__":
    run_benchmark(main)
