"""Known effects of this class of machine, found by ``autotune compare`` with sign and size.

Each effect must be decided, its interval must exclude "no effect" on the expected side, and the
median time ratio must lie within a factor 1.6 of the expected one (twice as large would be another
effect).

Usage: python -m benchmarks.known_effects [--only NAME ...] [--pairs N] [--json FILE]

Expected on a quiet machine: 3 to 4 minutes for the four.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks.common import (
    Answer,
    autotune,
    conclude,
    options,
    rejected_share,
    run_benchmark,
    store_at,
    table,
)

FACTOR = 1.6
BOUND = (
    f"every effect: exit 0, interval excludes 0 on the expected side, time ratio within x{FACTOR}"
)


@dataclass(frozen=True)
class Effect:
    """``setting`` multiplies the program's time by ``ratio``, compared with the default.

    ``program``: the words after ``python -m runner.micro``.
    """

    name: str
    program: str
    setting: str
    ratio: float


# Without single copy, 1 MiB is copied twice, by both processes at once. One buffer used again and
# again stays in the caches; there the two copies were faster than one copy by the kernel. The other
# case uses buffers that together are larger than the caches. The expected ratio is that of an
# earlier table for this class of machine, which does not say which of the two cases it was.
EFFECTS = (
    Effect("eager", "pingpong --size 4096 --count 40000", "btl_sm_eager_limit=65536", 0.23),
    Effect("no-cma-one-buffer", "pingpong --size 1048576 --count 2000", "smsc=^cma", 1.5),
    Effect("no-cma-walking", "pingpong --size 1048576 --count 1000 --buffers 64", "smsc=^cma", 1.5),
    Effect(
        "chain",
        "bcast --size 262144 --count 20000",
        "coll_tuned_bcast_algorithm=chain,coll_tuned_bcast_algorithm_segmentsize=1024",
        6.0,
    ),
)


def time_ratio(gain: float) -> float:
    """Time of B over time of A from the gain T_A / T_B - 1."""
    return 1.0 / (1.0 + gain)


def judge(effect: Effect, answer: Answer) -> list[str]:
    """Faults of a comparison of this effect, in words; empty if the effect was found."""
    result = answer.result
    if answer.code != 0 or result.get("gain") is None or not result.get("gain_ci95"):
        return [f"{effect.name}: no result (exit {answer.code}): {answer.text[-300:]}"]
    wrong = []
    low, high = result["gain_ci95"]
    found = time_ratio(result["gain"])
    if not (low > 0 if effect.ratio < 1 else high < 0):
        wrong.append(f"{effect.name}: interval of the gain {low:+.2f} .. {high:+.2f}")
    if abs(math.log(found / effect.ratio)) > math.log(FACTOR):
        wrong.append(f"{effect.name}: time x{found:.2f}, expected x{effect.ratio:g}")
    return wrong


def row(effect: Effect, answer: Answer) -> dict[str, Any]:
    """A line of the table; ratios are times of the setting over times of the default."""
    result = answer.result
    gain, interval = result.get("gain"), result.get("gain_ci95")
    return {
        "effect": effect.name,
        "expected": f"x{effect.ratio:g}",
        "found": "-" if gain is None else f"x{time_ratio(gain):.2f}",
        "interval": "-"
        if not interval
        else f"{time_ratio(interval[1]):.2f} .. {time_ratio(interval[0]):.2f}",
        "outcome": result.get("outcome", f"exit {answer.code}"),
        "pairs": result.get("pairs", "-"),
        "runs": result.get("runs", "-"),
        "rejected": f"{rejected_share(result):.0%}",
        "drift_repeats": result.get("drift_repeats", "-"),
        "seconds": f"{answer.wall_s:.0f}",
    }


def compare(effect: Effect, store: str, *more: str, timeout_s: float = 600.0) -> Answer:
    """Compare the setting with the default until decided."""
    program = [sys.executable, "-m", "runner.micro", *effect.program.split()]
    words = ["compare", "default", effect.setting, "-n", "2", "--metric", "json:seconds"]
    return autotune(*words, "--store", store, *more, "--", *program, timeout_s=timeout_s)


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--only", nargs="+", choices=[e.name for e in EFFECTS])
    arguments.add_argument("--pairs", type=int, help="exactly so many; default: until decided")
    arguments.add_argument("--runs", type=int, help="launches for each effect at most")
    given = arguments.parse_args()
    more = [
        f"--{name}={value}"
        for name, value in (("pairs", given.pairs), ("runs", given.runs))
        if value
    ]
    more += given.guard
    rows, failures, words = [], [], {}
    with store_at(given.store) as store:
        for effect in EFFECTS:
            if given.only and effect.name not in given.only:
                continue
            answer = compare(effect, store, *more)
            rows.append(row(effect, answer))
            failures += judge(effect, answer)
            words[effect.name] = answer.result.get("words", answer.text)
    table(rows)
    return conclude("known effects", BOUND, failures, {"effects": rows, **words}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
