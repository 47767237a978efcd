"""Searches and comparisons while a second program uses the machine.

continuous: one core is busy for half of the time. ``autotune search`` must end within a bounded
time with "machine too busy" (exit 1) and name no winner.

bursts: one core is busy for 20 % of the time, in bursts of about 0.4 s. ``autotune compare`` must
still find a known effect well above x1.5. The share of rejected runs is printed.

Usage: python -m benchmarks.foreign_load [--part continuous|bursts] [--json FILE]

Expected: continuous 1.5 to 4 minutes, bursts 1 to 3 minutes on an otherwise quiet machine.
"""

from __future__ import annotations

import os
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
from benchmarks.known_effects import EFFECTS, compare, time_ratio
from benchmarks.load import foreign_load

# Five rejections in a row, each followed by up to 15 s of waiting, once for a setting and once for
# the default, which shows whether the machine is the cause; the rest is launches and start-up.
BOUND_S = 240.0
FOUND = 0.5
BOUND = (
    f"continuous: exit 1 with 'machine too busy' within {BOUND_S:g} s, no winner; "
    f"bursts: interval of the known gain above 0 and gain >= {FOUND:.0%}"
)


def judge_continuous(answer: Answer) -> list[str]:
    """Faults in the end of a search under continuous load, in words."""
    wrong = []
    if answer.code != 1 or "machine too busy" not in answer.text:
        wrong.append(
            f"continuous: exit {answer.code}, not 'machine too busy': {answer.text[-300:]}"
        )
    if answer.wall_s > BOUND_S:
        wrong.append(f"continuous: took {answer.wall_s:.0f} s")
    if answer.result.get("status") == "recommended":
        wrong.append("continuous: a winner was named")
    return wrong


def judge_bursts(answer: Answer) -> list[str]:
    """Faults in a comparison under bursts of load, in words."""
    gain, interval = answer.result.get("gain"), answer.result.get("gain_ci95")
    if answer.code != 0 or gain is None or not interval:
        return [f"bursts: no result (exit {answer.code}): {answer.text[-300:]}"]
    if interval[0] <= 0 or gain < FOUND:
        return [f"bursts: gain {gain:+.2f}, interval {interval[0]:+.2f} .. {interval[1]:+.2f}"]
    return []


def row(part: str, duty: float, period_s: float, answer: Answer) -> dict[str, Any]:
    gain = answer.result.get("gain")
    ended = answer.result.get("outcome") or answer.result.get("status") or "too busy"
    return {
        "part": part,
        "duty": f"{duty:.0%}",
        "period_s": period_s,
        "exit": answer.code,
        "ended": ended if answer.code == 0 else (answer.text.splitlines() or ["-"])[0][:60],
        "time": "-" if gain is None else f"x{time_ratio(gain):.2f}",
        "rejected": f"{rejected_share(answer.result):.0%}" if answer.result else "all judged",
        "rejections": len(answer.result.get("rejections") or []),
        "seconds": f"{answer.wall_s:.0f}",
    }


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--part", choices=("continuous", "bursts"))
    arguments.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    arguments.add_argument("--burst-duty", type=float, default=0.2)
    arguments.add_argument("--burst-period", type=float, default=2.0, help="seconds")
    given = arguments.parse_args()
    rows, failures, figures = [], [], {}
    with store_at(given.store) as store:
        if given.part != "bursts":
            with foreign_load(0.5, core=given.core):
                answer = autotune(
                    *("search", "--app", "micro", "--strategy", "random", "--trials", "10"),
                    *("--store", store, "--params-file", f"{store}.conf", *given.guard),
                    timeout_s=2 * BOUND_S,
                )
            rows.append(row("continuous", 0.5, 0.02, answer))
            failures += judge_continuous(answer)
        if given.part != "continuous":
            with foreign_load(given.burst_duty, given.burst_period, given.core):
                answer = compare(EFFECTS[0], store, *given.guard)
            rows.append(row("bursts", given.burst_duty, given.burst_period, answer))
            failures += judge_bursts(answer)
            figures["rejected_share_in_bursts"] = rejected_share(answer.result)
            figures["rejections"] = answer.result.get("rejections", [])
    table(rows)
    return conclude("foreign load", BOUND, failures, {"parts": rows, **figures}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
