"""Units and words beside a figure: its kind (time or rate) and its scale.

A time gets smaller and a rate gets larger when a program gets faster. The unit after the number is
read first, then a unit at the end of the words before it (``Time (ms):``), then those words. Words
of both kinds, or of neither, decide nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from runner.figure.lazy_pattern import lazy_pattern

Kind = Literal["time", "rate", ""]


@dataclass(frozen=True)
class Unit:
    """The unit or label of a figure.

    ``text`` is the unit as printed, or the word that shows the kind; "" if unknown. ``scale``: a
    time times its scale is in seconds; a rate times its scale has no prefix. ``stated``: ``text``
    is a unit.
    """

    kind: Kind = ""
    text: str = ""
    scale: float = 1.0
    stated: bool = False

    def base_value(self, value: float) -> float:
        """A printed value in seconds, or without its prefix.

        A small scale divides, so that 950 ms is exactly the number 0.95.
        """
        return value * self.scale if self.scale >= 1 else value / round(1 / self.scale)


UNKNOWN = Unit()
CLOCK = Unit("time", "s", 1.0, stated=True)
"""The unit of a text such as 1:02:03, whose value is in seconds."""
LABEL = 64
"""Characters before a number that may be its label."""

_TIMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86400.0),
}
_CLOCK = {name for name, scale in _TIMES.items() if scale >= 1} | {"d"}
"""Units of elapsed time: after a slash they make a rate, before it a time."""
_PREFIX = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6, "z": 7}
_COUNT = r"(?:bytes?|b|bits?|flops?|ops?|iops?|lups?|cups?|ups|teps|dofs?|atom-steps?|particles?)"
_PREFIX_UNIT = lazy_pattern(rf"([kmgtpez])(i?)({_COUNT})(?:/.*)?|([kmgtp])(bps)", re.IGNORECASE)
_BARE_RATE = lazy_pattern(
    r"(?:[kmgtpez]?flops|[kmgt]?flop/s|[kmgt]?iops|[kmgt]?bps|[kmgt]?lups|[kmgt]?cups|[kmgt]ups"
    r"|[kmgt]?teps|mops|fps|qps|tps|sypd)",
    re.IGNORECASE,
)
_OTHER = lazy_pattern(
    r"(?:%|(?:[kmgt]i?)?b|bytes|[kmgt]?flop|k?j|k?w|cycles|iterations|steps)", re.IGNORECASE
)
_WORD = r"[A-Za-z%µμ][A-Za-z0-9_%µμ^*-]*"
_UNIT = rf"{_WORD}(?:[ \t]?/[ \t]?{_WORD}|[ \t]+per[ \t]+{_WORD})*"
_BEHIND = lazy_pattern(rf"(?P<gap>[ \t]*)[\[(]?[ \t]*(?P<unit>{_UNIT})(?P<rest>.*)")
_NEXT_LABEL = lazy_pattern(r"[\])]?[ \t]*[:=]+[ \t]*[+-]?\.?\d")
_NEXT_NUMBER = lazy_pattern(r"[ \t]+[+-]?\.?\d")
_BEFORE = lazy_pattern(
    rf"(?:[\[(][ \t]*(?P<bracket>{_UNIT})[ \t]*[\])]|\bin[ \t]+(?P<named>{_UNIT}))"
    r"(?:[ \t]+(?:is|was|of))?[ \t]*[:=|>-]*[ \t]*$"
)
_SUFFIX = lazy_pattern(
    r"(?:^|[_ \t,])(?P<unit>s|sec|ms|msec|us|usec|µs|μs|ns|nsec)[ \t]*[:=]+[ \t]*$", re.IGNORECASE
)
_FIELD = lazy_pattern(r"[;|]|,[ \t]|(?<![\w.])[+-]?\d[\d.]*(?:[eEdD][+-]?\d+)?(?![\w.])")
_RATES = lazy_pattern(
    r"\b[kmgtpez]?flops?[ \t]*/[ \t]*s(?:ec(?:onds?)?)?\b|\b[kmgtpez]?flops\b"
    r"|[\w*-]+/[ \t]?s(?:ec(?:onds?)?)?\b|\bper[ \t]+(?:second|sec|minute|hour|day)\b"
    r"|\bbandwidth\b|\bthroughput\b|\b[kmgt]?teps\b|\b[kmgt]?lups\b|\b[kmg]ups\b|\bmops\b|\bsypd\b"
    r"|\bns/day\b"
    r"|\bfigure[ \t]of[ \t]merit\b|\bfom\b|\brating\b|\bperformance\b|\bspeed(?:[ -]?up)?\b"
    r"|\befficiency\b"
    r"|(?<!convergence )(?<!error )(?<!miss )(?<!hit )(?<!growth )(?<!decay )(?<!learning )"
    r"(?<!acceptance )(?<!rejection )(?<!failure )(?<!loss )(?<!cooling )(?<!strain )(?<!shear )"
    r"(?<!flow )(?<!mutation )(?<!compression )(?<!reduction )"
    r"\brate\b(?![ \t]+of[ \t]+(?:convergence|error|change|decay|growth|loss|failure))",
    re.IGNORECASE,
)
_TIME_WORDS = lazy_pattern(
    r"\b(?:time|timing|elapsed|wall|wtime|runtime|duration|took|latency|seconds?|secs?|zeit|dauer"
    r"|laufzeit)\b|time\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def unit_around(before: str, behind: str) -> Unit:
    """The unit in the texts before and after a number; ``before`` may lack the line's beginning."""
    unit = _unit_behind(before, behind)
    if unit is None:
        unit = _unit_before(before)
    return _words(before) if unit is None else unit


def unit_of_key(key: str) -> Unit:
    """The unit in the key of a figure in a JSON object."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").replace(".", " ")
    return unit_around(f"{words}: ", "")


def parse_unit(text: str) -> Unit:
    """The unit in a text: "us", "GB/s"; for other words a unit without a kind."""
    return (_unit(text, "") if text else None) or Unit("", text)


def _unit_behind(before: str, behind: str) -> Unit | None:
    match = _BEHIND.match(behind)
    if match is None:
        return None
    rest, words = match["rest"], before.rstrip(" \t:=")
    if _NEXT_LABEL.match(rest):
        return None  # The word is the label of the next number.
    if match["gap"] and _NEXT_NUMBER.match(rest) and words[-1:].isalpha():
        return None  # Label, number, label, number: the word is ambiguous.
    return _unit(match["unit"], before + rest)


def _unit_before(before: str) -> Unit | None:
    match = _BEFORE.search(before)
    if match is not None:
        unit = _unit(match["bracket"] or match["named"], "")
        if unit is not None:
            return unit
    match = _SUFFIX.search(before)
    return None if match is None else _unit(match["unit"], "")


def _unit(text: str, around: str) -> Unit | None:
    """The unit at the beginning of a text; None for another word."""
    compact = re.sub(r"[ \t]+per[ \t]+", "/", text.strip())
    compact = re.sub(r"[ \t]", "", compact)
    over, slash, under = compact.partition("/")
    name, below = over.lower(), under.partition("/")[0].lower()
    if slash and below in _CLOCK and name not in _CLOCK - {below}:
        return Unit("rate", text, rate_scale(compact), stated=True)
    if _BARE_RATE.fullmatch(over):
        return Unit("rate", text, rate_scale(compact), stated=True)
    if name in _TIMES and not (name.startswith("min") and _EXTREMES.search(around)):
        return Unit("time", text, _TIMES[name], stated=True)
    if _OTHER.fullmatch(over):
        return Unit("", text, stated=True)
    return None


_EXTREMES = lazy_pattern(r"\b(?:max|avg|mean|average)", re.IGNORECASE)
"""Beside these words "min" is the smallest figure, not minutes."""


def rate_scale(unit: str) -> float:
    """The factor of the unit prefix of a rate: 1e9 of "GB/s"; 1 without a prefix."""
    match = _PREFIX_UNIT.fullmatch(unit)
    if match is None:
        return 1.0
    return float((1024 if match[2] else 1000) ** _PREFIX[(match[1] or match[4]).lower()])


def _words(before: str) -> Unit:
    label = _FIELD.split(before)[-1].replace("_", " ")
    rates, others = [], label
    for match in _RATES.finditer(label):
        rates.append(match[0].strip(" /"))
        others = others.replace(match[0], " ")
    times = _TIME_WORDS.search(others)
    if bool(rates) == bool(times):
        return UNKNOWN
    if not rates:
        return Unit("time", times[0] if times else "")
    return _unit(rates[0], "") or Unit("rate", rates[0])


_COLUMNS = lazy_pattern(r"[ \t]*\|[ \t]*|[ \t]{2,}|\t")
HEADER_LINES = 40
"""A table has its header within this many lines above a row."""


def unit_in_header(lines: list[str], row: int, column: int) -> Unit:
    """The unit in a table's header for the number at a column of ``lines[row]``.

    A header has as many words as the row, and no number.
    """
    words = [match.start() for match in re.finditer(r"[^\s|]+", lines[row])]
    if len(words) < 3:
        return UNKNOWN
    index = sum(start <= column for start in words) - 1
    for line in reversed(lines[max(row - HEADER_LINES, 0) : row]):
        heads = _COLUMNS.split(line.strip().strip("#|").strip())
        if len(heads) == len(words) and not any(re.fullmatch(r"[\d.eE+-]+", h) for h in heads):
            return unit_around(f"{heads[index]}: ", "")
    return UNKNOWN
