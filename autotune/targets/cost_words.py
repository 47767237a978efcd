"""Words and units of figures that tell what a run cost: times, dates, rates, memory.

Such figures differ between two settings because one is faster. They say nothing about the result.
"""

from __future__ import annotations

import re

_COST_WORD = re.compile(
    r"(?<![a-z])(?:time|times|timing|timings|timer|elapsed|wall|walltime|wtime|wallclock|clock|cpu"
    r"|duration|took|runtime|seconds?|secs?|msec|usec|nsec|minutes?|hours?|date"
    r"|zeit|dauer|laufzeit"
    r"|rates?|speed|speedup|performance|perf|throughput|bandwidth|latency|efficiency|utili[sz]ation"
    r"|overhead|imbalance|[kmgtp]?flops?|[kmgtp]?flop/s|mops|gups|teps|fom|gpts|us|ms|ns|bw"
    r"|memory|mem|rss|vmhwm|vmsize|footprint)(?![a-z])|time(?![a-z])"
    r"|per[_ ]s(?:ec(?:ond)?)?(?![a-z])",
    re.IGNORECASE,
)
_STEP = re.compile(r"time[\s_-]*steps?|steps? of time", re.IGNORECASE)
_COST_UNIT = re.compile(
    r"\s*[\])]?\s*\(?(?:(?:s|sec|secs|seconds?|ms|msec|us|usec|ns|nsec|min|mins|minutes?|h|hr|hrs"
    r"|hours?|days?|%|[kmgtp]i?b(?:ytes)?|[kmgtp]?(?:flops?|hz))(?![a-z0-9_])"
    r"|(?![kcm]?m/)[a-z]+\s?/\s?(?:s|sec|second|day|hour|proc|core)(?![a-z]))",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<![a-z])(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"(?![a-z])",
    re.IGNORECASE,
)


def names_cost(label: str) -> bool:
    """Whether the words before a figure say that it is a time, a date, a rate or a size in memory.

    The word of a time step ("time step 0.005") names a parameter of the program.
    """
    plain = _STEP.sub(" ", label).replace("_", " ")
    return _COST_WORD.search(plain) is not None or _DATE.search(plain) is not None


def heads_costs(label: str) -> bool:
    """Whether the words before the first figure head a list of such figures.

    As in "seconds, mean over ranks: compute 0.1, mpi 0.2", or in a row "CPU 100 0.5 PASSED 2.5".
    """
    if label.strip().lower() in ("cpu", "wall"):
        return True
    head, colon, rest = label.partition(":")
    return bool(colon) and re.search(r"[^\W\d_]", rest) is not None and names_cost(head)


def unit_of_cost(behind: str) -> str:
    """The unit of a time, rate or size at the beginning of the text behind a figure; "" if none."""
    match = _COST_UNIT.match(behind)
    return "" if match is None else match[0]
