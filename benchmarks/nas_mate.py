"""NAS kernels on MATE beside flat MPI, both tuned with as many settings.

    python -m benchmarks.nas_mate [--kernels cg mg lu ft is] [--latency-ms 0 0.3 1 3] [--ranks 2]
                                  [--tries 12] [--blocks 8] [--limit limit.json] [--json FILE]

For each kernel and latency (0: one node; else a testbed of nodes of one core with 1 Gbit/s, which
is made anew) flat MPI gets ``--tries`` settings of the library: the default and drawn ones. Then
MATE gets as many layouts, half of them also under flat MPI's best setting. Both are tuned as
:mod:`benchmarks.harness.contest` says. At the end the default, tuned flat MPI and the tuned layout
run in interleaved blocks, guard on. ``speed_up`` is that over tuned flat MPI, with its 95 %
interval; with ``--limit``, the JSON of :mod:`benchmarks.overlap_limit`, ``part`` is its share of
what the limit allows. A testbed needs root; the machine must have no other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from benchmarks.common import options, positive, report, run_benchmark, table
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.contest import tune
from benchmarks.harness.figures import NO_INTERVAL, middle, seconds, speedup
from benchmarks.harness.launches import Place
from benchmarks.models import FLAT, drawn
from benchmarks.nas_table import CLASSES
from benchmarks.overlap_limit import KERNELS, LATENCIES_MS, latency_name
from runner import testbed as tb
from runner.types import RunRecord

RATE_BPS = 1_000_000_000
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


def flat_settings(space: Space, names: tuple[str, ...], count: int, seed: int) -> list[Setting]:
    """The default, then drawn values of these parameters; fewer if there are no more."""
    rng = np.random.default_rng(seed)
    found = {DEFAULT: None}
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


def contest(kernel: str, latency_ms: float, given: argparse.Namespace) -> dict[str, Any]:
    """The row of a kernel at a latency."""
    cluster = "testbed" if latency_ms else "local"
    target = Place.of(cluster, given.mpi).target(
        f"nas-{kernel}", given.problem or CLASSES[kernel], given.ranks, timeout_s=120.0
    )
    library = "openmpi+openmpi-tcp" if latency_ms else "openmpi"
    space = target.space(f"{library}+mate")
    seed = given.seed
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def run(name: str, setting: Setting) -> RunRecord:
            return bench.run(target.spec(space, setting), name)

        def time(name: str, setting: Setting) -> float:
            return run(name, setting).value_s

        time(FLAT, DEFAULT)  # It is an outlier.
        settings = flat_settings(target.space(library), KNOBS[cluster], given.tries, seed)
        flat = tune({FLAT: settings}, time, seed)[FLAT].tuned
        layouts = drawn(layout_space(target.space("mate")), "mate", given.tries, seed, flat)
        mate = tune({MATE: layouts}, time, seed)[MATE].tuned
        keys = [*dict.fromkeys([(FLAT, DEFAULT), (FLAT, flat), (MATE, mate)])]
        runs = interleaved(keys, lambda key, block: run(*key), given.blocks, seed)
    times = {key: seconds(records) for key, records in runs.items()}
    tuned, own = times[FLAT, flat], times[MATE, mate]
    gain = speedup(tuned, own)
    row: dict[str, Any] = {
        "kernel": kernel,
        "latency": latency_name(latency_ms),
        "flat_s": f"{statistics.median(times[FLAT, DEFAULT]):.4f}",
        "tuned_s": f"{statistics.median(tuned):.4f}",
        "mate_s": f"{statistics.median(own):.4f}",
        "speed_up": str(gain),
        "over default": str(speedup(times[FLAT, DEFAULT], own)),
    }
    if (limit := given.limits.get((kernel, latency_name(latency_ms)))) is not None:
        row["limit"] = limit
        row["part"] = f"{(gain.value - 1) / (limit - 1):.0%}" if limit > 1.0 else "-"
    return {
        **row,
        "waiting_s": f"{middle(runs[MATE, mate], 'waiting_s'):.4f}",
        "layout": mate.key,
        "flat MPI": flat.key,
        "tried": [len(settings), len(layouts)],
        "rejected": bench.rejected,
        "runs": {f"{name} {setting.key}": own for (name, setting), own in times.items()},
    }


def main() -> int:
    parser = options(__doc__)
    add = parser.add_argument
    add("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    add("--class", dest="problem", choices="SWAB", help="for all; default: about a second each")
    add("--ranks", type=positive, default=2, help="cores")
    add("--latency-ms", type=float, nargs="+", default=LATENCIES_MS, help="0: one node")
    add("--tries", type=positive, default=12, help="settings of each form")
    add("--blocks", type=positive, default=8)
    add("--seed", type=int, default=1)
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--limit", type=Path, metavar="FILE", help="JSON of benchmarks.overlap_limit")
    given = parser.parse_args()
    known = json.loads(given.limit.read_text())["rows"] if given.limit else []
    given.limits = {(one["kernel"], one["latency"]): float(one["limit"]) for one in known}
    rows: list[dict[str, Any]] = []
    hidden = ("layout", "flat MPI", "tried", "rejected", "runs")
    for latency_ms in given.latency_ms:
        try:
            if latency_ms:
                tb.down(tb.DEFAULT_NAME)
                tb.up(tb.DEFAULT_NAME, given.ranks, latency_ms / 1e3, RATE_BPS)
            for kernel in given.kernels:
                rows.append(contest(kernel, latency_ms, given))
                table([{k: v for k, v in rows[-1].items() if k not in hidden}])
                print(f"  {rows[-1]['layout']}; flat MPI: {rows[-1]['flat MPI']}", flush=True)
        finally:
            if latency_ms:
                tb.down(tb.DEFAULT_NAME)
    print(f"{NO_INTERVAL}\n" if given.blocks < 6 else "")
    report("nas_mate", {"ranks": given.ranks, "rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
