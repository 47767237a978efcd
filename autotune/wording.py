"""Figures and verdicts in words: the same on the terminal and on pages.

Times as people write them: 90, 90s, 10m, 1.5h, 1h30m.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from autotune.errors import UsageError

HEADLINES = {
    "recommended": "A better setting is proven.",
    "keep_default": "Keep the default: nothing was proven to be faster.",
    "inconclusive": "Not decided: no setting was proven faster, and none was ruled out.",
    "too_noisy": "Too noisy: the runs on this machine scatter too much to decide.",
    "unguarded": "Measured without the guard: nothing is proven.",
    "interrupted": "Interrupted.",
}
FEW = 4
"""Settings with more parameters are counted, not spelled out, where they are not the answer."""
SHORT = 70
"""Letters that a setting may have to be spelled out wherever it is named."""


UNGUARDED = "measured without the guard"
MAY_BE_OTHERS = "other programs may have caused the differences"
WHY_UNGUARDED = (
    "Without the guard (--no-guard), runs that other programs disturbed count too, "
    "so they may have caused the difference. The same command without --no-guard "
    "can prove it."
)
LOOKS_BETTER = "looks better"
"""What "better" is called where nothing is proven."""


def seconds(value: float | None) -> str:
    """A time in the unit that reads best: 1.234 s, 12.3 ms, 3 min 20 s."""
    if value is None:
        return "-"
    if value < 0.001:
        return f"{value * 1e6:.0f} us"
    if value < 0.1:
        return f"{value * 1e3:.1f} ms"
    if value < 100:
        return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"
    if value < 3600:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"


def remaining(value: float) -> str:
    """A time that is only estimated, in whole seconds: 9 s, 3 min 20 s."""
    return f"{round(value)} s" if value < 99.5 else seconds(value)


def asked_time(value: float) -> str:
    """A time that somebody gave, without digits that he did not write: 40 s, 1.5 s, 10 min."""
    if value < 60 or value % 60:
        return f"{value:g} s"
    hours, minutes = divmod(round(value / 60), 60)
    return " ".join(f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min")) if n)


def count(number: int, thing: str) -> str:
    """1 value, 2 values."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percent(gain: float | None) -> str:
    """A gain with its sign: +8.3 %."""
    return "-" if gain is None else f"{gain * 100:+.1f} %"


def share(part: float) -> str:
    """A part of one, without a sign: 8.3 %."""
    return f"{part * 100:.1f} %"


def binary(size: int) -> str:
    """Bytes with the prefixes that count 1024: 64, 4k, 1M."""
    for unit, sign in ((2**20, "M"), (2**10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{sign}"
    return str(size)


def interval(ends: tuple[float | None, float | None] | None) -> str:
    """ "+2.1 % .. +12.7 %", with "-" for an open end; empty where there is none."""
    if ends is None or ends == (None, None):
        return ""
    return f"{percent(ends[0])} .. {percent(ends[1])}"


def interval_or_range(
    ends: tuple[float | None, float | None] | None, seen: tuple[float | None, float | None] | None
) -> str:
    """The interval; where there is none yet, the range of what was seen, which is named so."""
    return interval(ends) or (f"range {interval(seen)}" if interval(seen) else "")


def verdict_words(outcome: str, why: str = "", guarded: bool = True) -> str:
    """For people; ``why`` is the reason that was given with the outcome."""
    if outcome == "better" and not guarded:
        return LOOKS_BETTER
    if outcome == "continue":
        return "open"
    if outcome != "futile":
        return outcome
    if "another finalist" in why:
        return "another won"
    return why.replace("a gain of ", "no gain of ").removesuffix(" is ruled out") or outcome


def short_setting(values: Mapping[str, object]) -> str:
    """On one line, or how many parameters it has where that is shorter."""
    if len(values) > FEW:
        return f"a setting of {len(values)} parameters"
    return ", ".join(f"{k}={v}" for k, v in values.items()) or "default"


def beginning(key: str, room: int) -> str:
    """A setting's first parameters as far as ``room`` columns go, and how many more there are."""
    parts = key.split(",")
    for count in range(len(parts), 0, -1):
        more = f" and {len(parts) - count} more" if count < len(parts) else ""
        said = " ".join(parts[:count]) + more
        if len(said) <= room:
            return said
    return said


def spelled(values: Mapping[str, object]) -> str:
    """One name and value per line."""
    return "\n".join(f"{name} = {value}" for name, value in values.items())


class ParameterNames:
    """What settings are called in the words of one answer, by their keys."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.whole: dict[str, str] = {}
        """Name and text of those that have a number for a name: to be spelled out once."""

    @classmethod
    def of_candidates(cls, settings: Mapping[str, Mapping[str, object]]) -> ParameterNames:
        """``a=1, b=2``, or ``candidate 2`` for a long one.

        ``settings`` maps keys to values, in the order of the numbers.
        """
        names, whole = {}, {}
        for number, (key, values) in enumerate(settings.items(), 1):
            names[key] = short_setting(values)
            if len(values) > FEW or len(key) > SHORT:
                names[key] = f"candidate {number}"
                whole[names[key]] = " ".join(f"{k}={v}" for k, v in values.items())
        found = cls(names)
        found.whole = whole
        return found

    def name(self, key: str) -> str:
        """Of a setting by its key; one that is not among them is spelled out or counted."""
        if key in self._names:
            return self._names[key]
        parts = key.count(",") + 1
        return f"a setting of {parts} parameters" if parts > FEW else key.replace(",", ", ")

    def within(self, words: str) -> str:
        """A sentence with names in place of the keys in it."""
        for key in sorted(self._names, key=len, reverse=True):
            words = words.replace(key, self._names[key])
        return words


_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h)?\s*")
_UNIT = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 1.0}


def parse_duration(text: str, where: str = "") -> float:
    """Seconds; raises UsageError for anything that is not a positive time, behind ``where`` (the
    option that said it)."""
    rest, total = text.strip().lower(), 0.0
    while rest:
        match = _PART.match(rest)
        if match is None:
            break
        total += float(match[1]) * _UNIT[match[2]]
        rest = rest[match.end() :]
    if rest or not 0 < total < math.inf:
        raise UsageError(
            f"{where}{text!r} is not a time; expected a number and s, m or h, such as 90s, "
            "10m or 1h30m"
        )
    return total
