"""Figures and verdicts as text, the same on the terminal and on pages; durations from text.

Durations may be written as 90, 90s, 10m, 1.5h or 1h30m.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from autotune.errors import UsageError
from runner.figure.unit import rate_scale
from runner.types import RunRecord

HEADLINES = {
    "recommended": "A better setting is proven.",
    "keep_default": "Keep the default: nothing was proven to be faster.",
    "contradicted": "Faster, but contradicted: nothing is recommended.",
    "inconclusive": "Not decided: no setting was proven faster, and none was ruled out.",
    "too_noisy": "Too noisy: the runs on this machine scatter too much to decide.",
    "unguarded": "Measured without the guard: nothing is proven.",
    "interrupted": "Interrupted.",
}
FEW = 4
"""A setting with more parameters is shown as their number, except if it is the answer."""
SHORT = 70
"""Longest text, in characters, of a setting that is always spelled out."""


UNGUARDED = "measured without the guard"
MAY_BE_OTHERS = "other programs may have caused the differences"
WHY_UNGUARDED = (
    "Without the guard (--no-guard), runs that other programs disturbed count too, "
    "so they may have caused the difference. The same command without --no-guard "
    "can prove it."
)
LOOKS_BETTER = "looks better"
"""The word for the verdict "better" of runs without the guard, where nothing is proven."""


def seconds(value: float | None) -> str:
    """A time in a unit that is easy to read: 1.234 s, 12.3 ms, 3 min 20 s."""
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


OBJECTIVE = "objective"
"""The unit of a run whose figure is a user's function."""


@dataclass(frozen=True)
class Metric:
    """The kind of a study's figures, and their display.

    ``kind``: "wall" (wall time), "time" (the program's own), "rate" (its figure is 1/rate) or
    "objective" (a user's function).
    """

    kind: Literal["wall", "time", "rate", "objective"] = "wall"
    unit: str = "s"
    """As the program prints it; s for times, empty if unknown."""

    @classmethod
    def of(cls, record: RunRecord | None) -> Metric:
        """The metric of a run's figure."""
        if record is None or record.metric_s is None:
            return cls()
        unit = record.metric_unit
        if unit == OBJECTIVE:
            return cls("objective", "")
        return cls("rate", unit) if record.metric_rate else cls("time", unit or "s")

    def words(self, value_s: float | None) -> str:
        """One figure of the study as text: a time, the printed rate, or the number itself."""
        if value_s is None:
            return "-"
        if self.unit == "s":
            return seconds(value_s)
        value = value_s
        if self.kind == "rate":
            value = 1 / value_s / rate_scale(self.unit) if value_s else 0.0
        return f"{value:.4g} {self.unit}".rstrip()


def remaining(value: float) -> str:
    """An estimated time, in whole seconds: 9 s, 3 min 20 s."""
    return f"{round(value)} s" if value < 99.5 else seconds(value)


def asked_time(value: float) -> str:
    """A time that a user gave, with the given digits only: 40 s, 1.5 s, 10 min."""
    if value < 60 or value % 60:
        return f"{value:g} s"
    hours, minutes = divmod(round(value / 60), 60)
    return " ".join(f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min")) if n)


def count(number: int, thing: str) -> str:
    """A number with its noun: 1 value, 2 values."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def size_words(size: float) -> str:
    """A message size: 8 B, 4 KiB, 1.5 MiB."""
    for unit, bytes_each in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= bytes_each:
            return f"{size / bytes_each:.3g} {unit}"
    return f"{size:.3g} B"


def percent(gain: float | None) -> str:
    """A gain with its sign: +8.3 %."""
    return "-" if gain is None else f"{gain * 100:+.1f} %"


def share(part: float) -> str:
    """A fraction (0 to 1) in percent, without a sign: 8.3 %."""
    return f"{part * 100:.1f} %"


def binary(size: int) -> str:
    """Bytes with binary prefixes (1k = 1024): 64, 4k, 1M."""
    for unit, sign in ((2**20, "M"), (2**10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{sign}"
    return str(size)


def interval(ends: tuple[float | None, float | None] | None) -> str:
    """An interval of gains: "+2.1 % .. +12.7 %", "-" for an open end; empty for no interval."""
    if ends is None or ends == (None, None):
        return ""
    return f"{percent(ends[0])} .. {percent(ends[1])}"


def interval_or_range(
    ends: tuple[float | None, float | None] | None,
    extremes: tuple[float | None, float | None] | None,
) -> str:
    """The interval, or, if there is none yet, "range" and the smallest and largest gain seen."""
    return interval(ends) or (f"range {interval(extremes)}" if interval(extremes) else "")


def verdict_words(outcome: str, why: str = "", has_guard: bool = True) -> str:
    """The verdict for readers; ``why`` is the reason that came with ``outcome``."""
    if outcome == "better" and not has_guard:
        return LOOKS_BETTER
    if outcome == "continue":
        return "open"
    if outcome != "futile":
        return outcome
    if "another finalist" in why:
        return "another won"
    return why.replace("a gain of ", "no gain of ").removesuffix(" is ruled out") or outcome


def short_setting(values: Mapping[str, object]) -> str:
    """The setting on one line, or its number of parameters if it has more than ``FEW``."""
    if len(values) > FEW:
        return f"a setting of {len(values)} parameters"
    return ", ".join(f"{k}={v}" for k, v in values.items()) or "default"


def key_parts(key: str) -> list[str]:
    """The ``name=value`` texts of a setting's key; a comma inside quotes does not end a value."""
    return _KEY_PART.findall(key)


def beginning(key: str, room: int) -> str:
    """The first parameters of a setting that fit into ``room`` columns; the others are counted."""
    parts, text = key_parts(key), ""
    for count in range(len(parts), 0, -1):
        more = f" and {len(parts) - count} more" if count < len(parts) else ""
        text = " ".join(parts[:count]) + more
        if len(text) <= room:
            return text
    return text


def setting_lines(values: Mapping[str, object]) -> str:
    """The setting with one name and value per line."""
    return "\n".join(f"{name} = {value}" for name, value in values.items())


class ParameterNames:
    """The names of settings in the text of one answer, by the settings' keys."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.whole: dict[str, str] = {}
        """Name to full text, for each setting whose name is a number: it is spelled out once."""

    @classmethod
    def of_candidates(cls, settings: Mapping[str, Mapping[str, object]]) -> ParameterNames:
        """Names of settings: ``a=1, b=2``, or ``candidate 2`` for a long setting.

        ``settings`` maps keys to values; the numbers follow its order.
        """
        names, whole = {}, {}
        for number, (key, values) in enumerate(settings.items(), 1):
            names[key] = short_setting(values)
            if len(values) > FEW or len(key) > SHORT:
                names[key] = f"candidate {number}"
                whole[names[key]] = " ".join(f"{k}={v}" for k, v in values.items())
        names_of_settings = cls(names)
        names_of_settings.whole = whole
        return names_of_settings

    def name(self, key: str) -> str:
        """The name of the setting with this key; an unknown setting is spelled out or counted."""
        if key in self._names:
            return self._names[key]
        parts = key_parts(key)
        return f"a setting of {len(parts)} parameters" if len(parts) > FEW else ", ".join(parts)

    def within(self, words: str) -> str:
        """The sentence with the settings' names in place of their keys."""
        for key in sorted(self._names, key=len, reverse=True):
            words = words.replace(key, self._names[key])
        return words


_KEY_PART = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|[^,\"])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h)?\s*")
_UNIT = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 1.0}


MOST_RANKS = 10**6
"""Largest number of ranks, threads or workers that is read."""


def whole_number(text: str, most: int = MOST_RANKS) -> int | None:
    """The number that ASCII digits name; None for any other text, and above ``most``."""
    digits = text.lstrip("0") or text[-1:]
    if not (text.isascii() and text.isdigit()) or len(digits) > len(str(most)):
        return None
    return number if (number := int(digits)) <= most else None


def parse_duration(text: str, where: str = "") -> float:
    """The duration in seconds of a text such as 90s or 1h30m.

    Raises UsageError, which begins with ``where`` (the option that has the text), if the text is
    not a positive time.
    """
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
            "10m or 1h30m",
            code="time.syntax",
        )
    return total
