"""Racing against a grid with five repeats of every setting, on the real machine.

The space has 24 settings: the eager limit unset or at one of five levels (those above 4 KiB are
known to be much better for messages of 4 KiB), times four settings of two parameters that cannot
matter. The search tries all of them. With ``--large`` it has 108 settings, of three parameters that
cannot matter, and ``auto`` searches it until it stops by itself. The grid measures each setting
five times and takes the best median.

The compared decision is the eager limit, the only parameter that matters. Every limit above the
message size is equally good, so the two must agree whether the limit sends a 4 KiB message at once.

Usage: python -m benchmarks.racing_grid [--large] [--no-grid] [--json FILE]

Expected on a quiet machine: search 1 to 2 minutes, grid (120 runs) 3 to 4 minutes, or 15 minutes
for the large one (540 runs).
"""

from __future__ import annotations

import random
import statistics
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.common import (
    autotune,
    conclude,
    options,
    rejected_share,
    run_benchmark,
    store_at,
    table,
)

LIMITS = [1024, 2048, 8192, 16384, 65536]
Levels = dict[str, list[int]]
NULLS: Levels = {"coll_adapt_bcast_max_send_requests": [1], "osc_rdma_buffer_size": [8192]}
MANY_NULLS: Levels = {
    "coll_adapt_bcast_max_send_requests": [1],
    "osc_rdma_buffer_size": [8192, 131072],
    "coll_han_bcast_segsize": [4096, 65536],
}
MESSAGE = 4096
REPEATS = 5
RATIO, LARGE_RATIO = 3.0, 7.0
TARGET = ["--app", "micro", "--input", "pingpong-4k"]

Setting = dict[str, int]


def space_text(nulls: Levels = NULLS) -> str:
    """The space as a TOML file; every parameter also has the level "unset"."""
    lines = ['description = "racing against a grid"', 'library = "openmpi>=5"']
    for name, levels in {"btl_sm_eager_limit": LIMITS, **nulls}.items():
        lines += [f"[parameters.{name}]", f"levels = {levels}"]
    return "\n".join(lines) + "\n"


def settings(nulls: Levels = NULLS) -> list[Setting]:
    """Every setting of the space, with the default."""
    names = ["btl_sm_eager_limit", *nulls]
    levels = [[None, *values] for values in (LIMITS, *nulls.values())]
    return [
        {name: value for name, value in zip(names, chosen, strict=True) if value is not None}
        for chosen in product(*levels)
    ]


def decision(setting: dict[str, Any]) -> str:
    """Whether a 4 KiB message is sent at once under this setting."""
    limit = int(setting.get("btl_sm_eager_limit", MESSAGE))
    # The header counts too, so a limit of exactly 4 KiB (the default) is too small.
    return "eager" if limit > MESSAGE else "not eager"


def recommended(result: dict[str, Any]) -> dict[str, Any]:
    """The setting that a search recommends; empty for the default."""
    return dict((result.get("recommended") or {}).get("setting") or {})


def grid_winner(seconds: list[list[float]]) -> int:
    """The number of the setting with the best median."""
    return min(range(len(seconds)), key=lambda number: statistics.median(seconds[number]))


def words(setting: Setting) -> str:
    """The setting as the command line expects it."""
    return ",".join(f"{name}={value}" for name, value in setting.items()) or "default"


def measure_grid(
    every: list[Setting], space: str, store: str, guard: list[str]
) -> tuple[Setting, int]:
    """The grid's winner and the number of rejected runs; the order of runs is random."""
    seconds: list[list[float]] = [[] for _ in every]
    order = [number for number in range(len(every)) for _ in range(REPEATS)]
    random.Random(0).shuffle(order)
    rejected = 0
    while order:
        number = order.pop()
        answer = autotune(
            *(
                "run",
                "-s",
                words(every[number]),
                *TARGET,
                "--space",
                space,
                "--store",
                store,
                *guard,
            )
        )
        value = answer.result.get("run", {}).get("metric_s")
        if answer.code != 0 or value is None:
            rejected += 1
            if rejected > len(every) * REPEATS:
                raise SystemExit(f"the grid met too many failed runs; the last: {answer.text}")
            order.insert(0, number)
            continue
        seconds[number].append(float(value))
    return every[grid_winner(seconds)], rejected


def judge(
    raced: dict[str, Any],
    winner: Setting | None,
    search_runs: int,
    grid_runs: int,
    least: float = RATIO,
) -> list[str]:
    """Faults in words; ``winner`` is the grid's, None if the grid was not measured."""
    wrong = []
    found = decision(recommended(raced))
    known = "eager" if winner is None else decision(winner)
    if found != known:
        wrong.append(f"racing decided '{found}' ({raced.get('status')}), the grid '{known}'")
    if grid_runs < least * search_runs:
        ratio = grid_runs / search_runs
        wrong.append(f"{search_runs} search runs against {grid_runs}: x{ratio:.1f}")
    return wrong


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument(
        "--no-grid", action="store_true", help="count the grid's runs, take its decision as known"
    )
    arguments.add_argument("--large", action="store_true", help="108 settings, searched by auto")
    given = arguments.parse_args()
    nulls, least = (MANY_NULLS, LARGE_RATIO) if given.large else (NULLS, RATIO)
    every = settings(nulls)
    count = len(every)
    bound = f"same decision, and {REPEATS} x settings >= {least:g} x search runs"
    how = ["auto"] if given.large else ["exhaustive", "--trials", str(count)]
    with store_at(given.store) as store:
        space = Path(f"{store}.space.toml")
        space.write_text(space_text(nulls))
        answer = autotune(
            *("search", *TARGET, "--space", str(space), "--strategy", *how),
            *("--store", store, "--params-file", f"{store}.conf"),
            *given.guard,
        )  # fmt: skip
        result = answer.result
        if answer.code != 0 or not result.get("search_runs"):
            failure = f"search ended with exit {answer.code}: {answer.text[-300:]}"
            return conclude("racing against a grid", bound, [failure], {}, given.json)
        winner, grid_rejected = None, 0
        if not given.no_grid:
            winner, grid_rejected = measure_grid(every, str(space), store, given.guard)
    grid_runs = REPEATS * count
    rows = [
        {
            "way": "racing",
            "runs": result["search_runs"],
            "rejected": f"{rejected_share(result):.0%}",
            "winner": words(recommended(result)),
            "decision": decision(recommended(result)),
        },
        {
            "way": "grid",
            "runs": grid_runs,
            "rejected": f"{grid_rejected / (grid_rejected + grid_runs):.0%}",
            "winner": "not measured" if winner is None else words(winner),
            "decision": "eager (known)" if winner is None else decision(winner),
        },
    ]
    table(rows)
    figures = {
        "settings": count,
        "search_runs": result["search_runs"],
        "confirmation_runs": result["confirmation_runs"],
        "grid_runs": grid_runs,
        "ratio": grid_runs / result["search_runs"],
        "status": result["status"],
        "racing_seconds": answer.wall_s,
        "ways": rows,
    }
    failures = judge(result, winner, result["search_runs"], grid_runs, least)
    return conclude("racing against a grid", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
