"""NAS kernels on MATE beside flat MPI, both tuned with as many settings.

    python -m benchmarks.nas_mate --keep DIR [--kernels cg mg lu ft is] [--latency-ms 0 0.3 1 3]
                                  [--ranks 2] [--tries 12] [--blocks 8] [--limit limit.json]
                                  [--list] [--json FILE]

A cell is a kernel at a latency (0: one node; else a testbed of nodes of one core with 1 Gbit/s,
which is made anew). In it flat MPI gets ``--tries`` settings of the library: the default, on nodes
also one that sends messages of up to 4 MiB at once, and drawn ones. Then MATE gets as many, half as
many layouts under two settings of the library each: flat MPI's best one, and the default, on nodes
with that limit. Both are tuned as :mod:`benchmarks.harness.contest` says, with as many runs. At the
end the default, tuned flat MPI and the tuned layout run in interleaved blocks, guard on; no run of
the tuning counts there. ``speed_up`` is that over tuned flat MPI, with its 95 % interval.

With ``--limit``, the JSON of :mod:`benchmarks.overlap_limit`, ``part`` is the speed-up's share of
what the limit allows, ``of forecast`` that of what a runtime without overhead would gain. The delay
line of a testbed takes CPU time from the last node, which a flat program that waits does not miss:
``limit, line`` and ``part, line`` count its time under tuned flat MPI as computation of that node.
The goal is 60 % of that where the limit is 1.1 or more, and on one node a lower end of at least
0.97.

Runs and decided cells go to DIR, and the same command goes on where it was interrupted, also with
more blocks. ``--list`` shows what is open and how long it takes, and runs nothing. A testbed needs
root; the machine must have no other work.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting, Space
from autotune.targets.program_identity import program_hash
from benchmarks.common import commit, options, positive, report, run_benchmark, table
from benchmarks.harness.bed import Bed
from benchmarks.harness.bench import Bench, RunLog, interleaved
from benchmarks.harness.cells import START_S, Cell, Cells, Row
from benchmarks.harness.contest import runs_of, tune
from benchmarks.harness.figures import NO_INTERVAL, Speedup, middle, seconds, speedup
from benchmarks.harness.launches import Place
from benchmarks.models import EAGER, FLAT, drawn
from benchmarks.nas_table import CLASSES
from benchmarks.overlap.replay import Limit
from benchmarks.overlap_limit import KERNELS, LATENCIES_MS, latency_name
from runner.machine import describe_machine
from runner.types import RunRecord

KNOBS = {
    "local": (
        "btl_sm_eager_limit", "btl_sm_max_send_size", "btl_sm_fbox_size", "single_copy",
        "mpi_yield_when_idle", "bind_to",
    ),
    "testbed": (
        "btl_tcp_eager_limit", "btl_tcp_sndbuf", "btl_tcp_rcvbuf", "btl_tcp_links",
        "mpi_yield_when_idle", "mpi_event_tick_rate",
    ),
}  # fmt: skip
"""What flat MPI can do about waiting: parameters that are drawn at once."""
NO_LAYOUT = ("core", "affinity", "thread_level")
"""Parameters of the runtime that keep their defaults."""
MATE = "MATE"
SECONDS = 1.5
"""Of a run, expected where no limit says it."""
SHARES = ("limit", "part", "limit, line", "part, line", "of forecast", "goal")
PART, WORTH, NODE = 0.6, 1.1, 0.97
"""Goals: part of the limit's gain where the limit is worth it; lower end on one node."""


@dataclass(frozen=True)
class Question:
    """A kernel in a class at a latency, 0 for one node."""

    kernel: str
    problem: str
    latency_ms: float
    ranks: int
    tries: int
    seed: int

    @property
    def latency(self) -> str:
        return latency_name(self.latency_ms)

    @property
    def name(self) -> str:
        place = self.latency.replace(" ", "")
        return f"{self.kernel}-{self.problem}-{place}-{self.ranks}-{self.tries}-{self.seed}"


@dataclass(frozen=True)
class Bound:
    """What :mod:`benchmarks.overlap_limit` says of a kernel at a latency; seconds."""

    flat_s: float
    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Bound:
        return cls(float(row["flat_s"]), tuple(Limit(**one) for one in row["bounds"]))

    def gain(self, line_s: float = 0.0) -> float:
        """The largest speed-up where the delay line takes ``line_s`` CPU seconds of a run."""
        return self.flat_s / min(one.with_line(line_s) for one in self.limits)

    def forecast(self) -> float:
        """The speed-up of a runtime without overhead."""
        return self.flat_s / min(one.forecast_s for one in self.limits)


def flat_settings(
    space: Space, names: tuple[str, ...], count: int, seed: int, given: Sequence[Setting] = ()
) -> list[Setting]:
    """The default, these, then drawn values of the named parameters; fewer if there are no more."""
    rng = np.random.default_rng(seed)
    found = dict.fromkeys((DEFAULT, *given))
    for _ in range(200 * count):
        if len(found) >= count:
            break
        values = {k: v for k, v in space.sample(rng).items() if k in names}
        setting = space.canonical(Setting(values))
        if space.is_valid(setting):
            found[setting] = None
    return [*found]


def layout_space(space: Space) -> Space:
    """The space without parameters that keep their defaults."""
    return space.without(dict.fromkeys(NO_LAYOUT, "keeps its default"))


def contest(asked: Question, bed: Bed, given: argparse.Namespace) -> Row:
    """The row of a cell."""
    cluster = bed.up(asked.ranks if asked.latency_ms else 1, asked.latency_ms)
    target = Place.of(cluster, given.mpi).target(
        f"nas-{asked.kernel}", asked.problem, asked.ranks, timeout_s=120.0
    )
    library = "openmpi+openmpi-tcp" if asked.latency_ms else "openmpi"
    space = target.space(f"{library}+mate")
    seed, repeats = asked.seed, Counter[str]()
    identity = {
        "program": program_hash(target.program),
        "library": f"{target.library.family} {target.library.version}",
        "fingerprint": describe_machine().fingerprint,
    }
    log = RunLog(given.keep / f"{asked.name}.runs", identity)
    continued = len(log) > 0
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def launch(name: str, setting: Setting) -> RunRecord:
            rejected, line_s = bench.rejected, bed.line_s()
            record = bench.run(target.spec(space, setting), name)
            line_s = (bed.line_s() - line_s) / (1 + bench.rejected - rejected)
            extra = {"line_s": line_s + record.irq_s, "cpu_s": record.cpu_s}
            return dataclasses.replace(record, extra={**record.extra, **extra})

        def run(name: str, setting: Setting, block: int | None = None) -> RunRecord:
            place = f"{name} {setting.key}"
            repeats[place] += block is None
            place += f", try {repeats[place]}" if block is None else f", block {block}"
            return log.run(place, lambda: launch(name, setting), keeps_failure=block is None)

        def time(name: str, setting: Setting) -> float:
            return run(name, setting).value_s

        time(FLAT, DEFAULT)  # It is an outlier.
        eager = (EAGER,) if asked.latency_ms else ()
        settings = flat_settings(target.space(library), KNOBS[cluster], asked.tries, seed, eager)
        flat = tune({FLAT: settings}, time, seed)[FLAT]
        libraries = (*(eager or (DEFAULT,)), flat.tuned)
        layouts = drawn(layout_space(target.space("mate")), "mate", asked.tries, seed, libraries)
        mate = tune({MATE: layouts}, time, seed)[MATE]
        keys = [*dict.fromkeys([(FLAT, DEFAULT), (FLAT, flat.tuned), (MATE, mate.tuned)])]
        runs = interleaved(keys, lambda key, block: run(*key, block), given.blocks, seed)
    times = {key: seconds(records) for key, records in runs.items()}
    tuned, own = times[FLAT, flat.tuned], times[MATE, mate.tuned]
    gain = speedup(tuned, own)
    row = {
        "kernel": asked.kernel,
        "class": asked.problem,
        "latency": asked.latency,
        "flat_s": f"{statistics.median(times[FLAT, DEFAULT]):.4f}",
        "tuned_s": f"{statistics.median(tuned):.4f}",
        "mate_s": f"{statistics.median(own):.4f}",
        "speed_up": str(gain),
        "over default": str(speedup(times[FLAT, DEFAULT], own)),
        **shares(asked, gain, middle(runs[FLAT, flat.tuned], "line_s"), given.bounds),
        "waiting_s": f"{middle(runs[MATE, mate.tuned], 'waiting_s'):.4f}",
        "layout": mate.tuned.key,
        "flat MPI": flat.tuned.key,
        "line_s": {name: round(middle(r, "line_s"), 5) for (name, _), r in runs.items()},
        "tried": [flat.tried, mate.tried],
        "failed": {s.key: why for one in (flat, mate) for s, why in one.left_out.items()},
        "blocks": given.blocks,
        "rejected": bench.rejected,
        "commit": commit(),
        "runs": {f"{name} {setting.key}": own for (name, setting), own in times.items()},
    }
    # The time of a cell that was continued says nothing about others.
    return {**row, "wall_s": None} if continued else row


def shares(
    asked: Question, gain: Speedup, line_s: float, bounds: dict[tuple[str, str, str], Bound]
) -> dict[str, str]:
    """The limits, the shares of them that were reached, and whether the goal was."""
    known = bounds.get((asked.kernel, asked.problem, asked.latency))
    if not asked.latency_ms:
        met = "met" if gain.low >= NODE else "missed"
        plain = f"{known.gain():.3f}" if known else "-"
        return {**dict.fromkeys(SHARES, "-"), "limit": plain, "goal": met}
    if known is None:
        return dict.fromkeys(SHARES, "-")
    plain_limit, limit = known.gain(), known.gain(line_s)

    def part(of: float) -> float | None:
        return (gain.value - 1) / (of - 1) if of > 1.0 else None

    own = part(limit)
    verdict = "-"
    if plain_limit >= WORTH:
        verdict = "met" if own is None or own >= PART else "missed"
    of_forecast = part(known.forecast())
    said = [
        f"{one:.0%}" if one is not None else "-" for one in (part(plain_limit), own, of_forecast)
    ]
    return {
        "limit": f"{plain_limit:.3f}",
        "part": said[0],
        "limit, line": f"{limit:.3f}",
        "part, line": said[1],
        "of forecast": said[2],
        "goal": verdict,
    }


def attempt(asked: Question, bed: Bed, given: argparse.Namespace) -> Row:
    """The row of a cell, or why it stays open: the others are measured all the same."""
    try:
        return contest(asked, bed, given)
    except WorkError as error:
        return {"kernel": asked.kernel, "latency": asked.latency, "open": f"{error}"}


def words(row: Row) -> str:
    """A cell in a line."""
    if "open" in row:
        return f"open: {row['open']}"
    return f"{row['speed_up']}, goal {row['goal']}; {row['layout']}; flat MPI: {row['flat MPI']}"


HIDDEN = (
    "layout", "flat MPI", "tried", "failed", "rejected", "runs", "commit", "blocks", "line_s",
    "wall_s", "waiting_s",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    arguments = options(__doc__)
    add = arguments.add_argument
    add("--keep", type=Path, required=True, metavar="DIR", help="runs and decided cells")
    add("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    add("--class", dest="problem", choices="SWAB", help="for all; default: about a second each")
    add("--ranks", type=positive, default=2, help="cores")
    add("--latency-ms", type=float, nargs="+", default=LATENCIES_MS, help="0: one node")
    add("--tries", type=positive, default=12, help="settings of each form")
    add("--blocks", type=positive, default=8)
    add("--seed", type=int, default=1)
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--limit", type=Path, metavar="FILE", help="JSON of benchmarks.overlap_limit")
    add("--list", action="store_true", help="what is open and how long it takes; run nothing")
    return arguments


def cells_of(given: argparse.Namespace) -> dict[str, tuple[Question, Cell]]:
    """All cells by name, latency after latency, so that each testbed is brought up once."""
    cells = {}
    for latency_ms in given.latency_ms:
        for kernel in given.kernels:
            problem = given.problem or CLASSES[kernel]
            asked = Question(kernel, problem, latency_ms, given.ranks, given.tries, given.seed)
            known = given.bounds.get((kernel, problem, asked.latency))
            run_s = START_S + (known.flat_s if known else SECONDS)
            launches = 1 + 2 * runs_of(given.tries) + 3 * given.blocks
            cells[asked.name] = asked, Cell(asked.name, launches * run_s, asked.latency)
    return cells


def main() -> int:
    given = parser().parse_args()
    rows = json.loads(given.limit.read_text())["rows"] if given.limit else []
    given.bounds = {(r["kernel"], r["class"], r["latency"]): Bound.of(r) for r in rows}
    every = cells_of(given)
    cells = Cells(
        given.keep,
        [cell for _, cell in every.values()],
        decided=lambda row: row.get("blocks", 0) >= given.blocks,
    )
    if given.list:
        cells.show()
        return 0
    with Bed() as bed:
        rows = cells.complete(lambda cell: attempt(every[cell.name][0], bed, given), words)
    open_ = [cell.name for cell in cells.open()]
    shown = [{k: v for k, v in row.items() if k not in HIDDEN} for row in rows if "open" not in row]
    if shown:
        table(shown)
    print(f"{NO_INTERVAL}\n" if given.blocks < 6 else "")
    report("nas_mate", {"ranks": given.ranks, "open": open_, "rows": rows}, given.json)
    return 1 if open_ else 0


if __name__ == "__main__":
    run_benchmark(main)
