"""Numbers in the output of a program: the whole number at a position in a line.

A pattern may match only a part of a number: ``([0-9.]+)`` finds 9.8 in ``9.8E+00`` and 1 in
``1,594.3``.  So the line around the match is read, too.  The grammar:

- plain numbers, ``12``, ``12.5``, ``.5``, with an exponent behind ``e``, ``E``, ``d`` or ``D``, or
  Fortran's exponent of three digits without a letter (``0.12-100``);
- thousands: ``1,594.3``, ``1,594,300``, ``1'594.3``, ``1_594``;
- clocks, in seconds: ``h:mm:ss``, ``d-hh:mm:ss``, ``d:hh:mm:ss``, each with a fraction, and
  ``mm:ss.s``; ``5:32`` only if the line says ``mm:ss`` or ``hh:mm``;
- parts with units, in seconds: ``1m23.45s``, ``2 h 5 min 3 s``, ``1 day, 2 hours``.

Text that other countries or programs read differently (``1,594``; ``12,5``; ``5:32``) is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from runner.figure.lazy_pattern import lazy_pattern

AROUND = 64
"""Characters on each side of a match that may belong to its number."""


@dataclass(frozen=True)
class WholeNumber:
    """A number and its position in the line; ``clock``: the text was a time, the value is
    seconds."""

    value: float
    start: int
    end: int
    clock: bool = False


class CutNumber(ValueError):
    """A match is part of a number with an uncertain value; the message is its text."""


_FIRST, _WORD, _DIGIT = lazy_pattern(r"\.?\d"), lazy_pattern(r"\w"), lazy_pattern(r"\d")
_NEGATIVE = lazy_pattern(r"(?:^|[^\w)])-$")
_TOKEN = lazy_pattern(
    r"""
      \d+-\d{1,2}:\d{2}:\d{2}(?:\.\d+)?            # days-hours:minutes:seconds
    | \d*\.\d+[+-]\d{3}(?![\d.:])                  # Fortran: an exponent without its letter
    | (?:\d|\.(?=\d))
      (?: \d
        | [.,:'_](?=\d)
        | \.(?![.\w]) | (?<=\d)\.(?=[eEdD][+-]?\d)
        | (?<=[\d.])[eEdD](?=[+-]?\d)
        | (?<=[\d.][eEdD])[+-](?=\d)
      )*
    """,
    re.VERBOSE,
)
_BETWEEN = r"[ \t]*,?[ \t]*(?:and[ \t]+)?"
_PARTS = lazy_pattern(
    r"(?<![\w.,:])"
    rf"(?:(\d+)[ \t]*d(?:ays?)?{_BETWEEN})?"
    rf"(?:(\d+)[ \t]*h(?:(?:ou)?rs?)?{_BETWEEN})?"
    rf"(?:(\d+)[ \t]*m(?:in(?:ute)?s?)?{_BETWEEN})?"
    r"(?:(\d+(?:\.\d*)?)[ \t]*s(?:ec(?:ond)?s?)?)?"
    r"(?<=[a-z])(?![\w/])"
)
_LARGE_PART = lazy_pattern(r"\d[ \t]*[dhm]")
"""A time in parts needs one of these: it is searched first, because this is fast."""
_PART_S = (86_400, 3_600, 60, 1)
_STATISTICS = lazy_pattern(r"\b(max|avg|mean|average)\b", re.IGNORECASE)
"""Beside these words "min" is the smallest figure, not minutes."""
_POWER = lazy_pattern(r"[ \t]*[x*×·][ \t]*10[ \t]*(\^|\*\*)")
_PLAIN = lazy_pattern(r"(\d+\.?\d*|\.\d+)(?:[eEdD]([+-]?\d{1,4}))?")
_NO_LETTER = lazy_pattern(r"(\d*\.\d+)([+-]\d{3})")
_THOUSANDS = lazy_pattern(
    r"\d{1,3}(?:(?:,\d{3}){2,}|(?:,\d{3})+\.\d*|(?:'\d{3})+(?:\.\d*)?|(?:_\d{3})+)"
)
_DAYS = lazy_pattern(r"(\d+)[-:](\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d*)?)")
_HOURS = lazy_pattern(r"(\d+):([0-5]?\d):([0-5]\d(?:\.\d*)?)")
_MINUTES = lazy_pattern(r"(\d+):([0-5]\d\.\d+)")
_TWO = lazy_pattern(r"(\d+):([0-5]\d)")
_SAID_MINUTES = lazy_pattern(r"(?<![hH:])[mM]{1,2}:[sS]{2}")
_SAID_HOURS = lazy_pattern(r"[hH]{1,2}:[mM]{2}(?!:)")
_DECIMAL_COMMA = lazy_pattern(r"\d+,\d+|(?!0)\d{1,3}(\.\d{3})+,\d+")
_IDENTIFIER = lazy_pattern(
    r"(?:[A-Za-z_]|\b(?:rank|proc|process|pe|node|task|thread|step|iter|iteration|id)"
    r"[ \t]*[#=]?[ \t]*)$",
    re.IGNORECASE,
)
_DATE_BEFORE = lazy_pattern(
    r"(?:\d{4}[-/.]\d\d?[-/.]\d\d?[ T]|\d\d?[-/.]\d\d?[-/.]\d{4}[ T]"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?[ \t]+\d{1,2},?[ \t]+)$"
)
_DATE_BEHIND = lazy_pattern(r"[ \t]*(?:[AaPp][Mm]\b|(?:[A-Z]{3,4}[ \t]+)?(?:19|20)\d\d\b)")


def number_at(line: str, start: int, end: int, separator: str = "") -> WholeNumber | None:
    """The whole number that starts in ``line[start:end]``; None if there are no digits.

    ``separator``: characters that the pattern names beside its group, so that they end a number.
    Raises CutNumber if the value is uncertain.
    """
    low = max(start - AROUND, 0)
    window = line[low : end + AROUND]
    digit = _FIRST.search(line, start, end)
    if digit is None or _WORD.search(line, start, digit.start()):
        return None
    at = digit.start() - low
    number = _parts(window, at) or _token(window, at, separator)
    rest = window[number.end : max(end - low, number.end)]
    longer = number.end == len(window) and _DIGIT.match(line, low + len(window))
    if longer or _DIGIT.search(rest) or _POWER.match(window, number.end):
        raise CutNumber(window[number.start : max(end - low, number.end)])
    return WholeNumber(number.value, low + number.start, low + number.end, number.clock)


def number_of(text: str) -> float | None:
    """The number in a text; None if it is not one, or uncertain."""
    try:
        number = number_at(text, 0, len(text))
    except CutNumber:
        return None
    return None if number is None else number.value


def _parts(window: str, at: int) -> WholeNumber | None:
    """A time in parts with units around a position; None if it has fewer than two parts."""
    if not _LARGE_PART.search(window) or ("min" in window and _STATISTICS.search(window)):
        return None
    for match in _PARTS.finditer(window):
        parts = [(float(n), s) for n, s in zip(match.groups(), _PART_S, strict=True) if n]
        if match.start() <= at < match.end() and len(parts) > 1:
            return WholeNumber(sum(n * s for n, s in parts), match.start(), match.end(), clock=True)
    return None


def _token(window: str, at: int, separator: str) -> WholeNumber:
    token = next(m for m in _TOKEN.finditer(window) if m.start() <= at < m.end())
    start, end = token.span()
    for sign in separator:
        start, end = _between(window, start, end, at, sign)
    if ":" in window[start:end] and _IDENTIFIER.search(window[:start]):
        start = min(window.index(":", start) + 1, at)
    end -= window[end - 1] == "."  # The end of a sentence, or a decimal point without digits.
    value, clock = _value(window, start, end)
    text = window[start:end]
    if value is None and "," in text and not _DECIMAL_COMMA.fullmatch(text):
        start, end = _between(window, start, end, at, ",")
        value, clock = _value(window, start, end)
    if value is None or not math.isfinite(value):
        raise CutNumber(text)
    if window[start - 1 : start] == "-" and _NEGATIVE.search(window[:start]):
        value, start = -value, start - 1
    return WholeNumber(value, start, end, clock)


def _between(window: str, start: int, end: int, at: int, sign: str) -> tuple[int, int]:
    """The part of ``window[start:end]`` around a position, between two of these characters."""
    first = window.rfind(sign, start, at) + 1 or start
    last = window.find(sign, at, end)
    return first, end if last < 0 else last


def _value(window: str, start: int, end: int) -> tuple[float | None, bool]:
    """The value of a text (None if uncertain), and True if it was a clock."""
    text = window[start:end]
    if plain := _PLAIN.fullmatch(text) or _NO_LETTER.fullmatch(text):
        return float(f"{plain[1]}e{plain[2] or 0}"), False
    if _THOUSANDS.fullmatch(text):
        return float(re.sub("[,'_]", "", text)), False
    if ":" not in text or _DATE_BEFORE.search(window[:start]) or _DATE_BEHIND.match(window, end):
        return None, False
    if clock := _DAYS.fullmatch(text):
        return _sum(clock, _PART_S), True
    if clock := _HOURS.fullmatch(text):
        return _sum(clock, _PART_S[1:]), True
    if clock := _MINUTES.fullmatch(text):
        return _sum(clock, _PART_S[2:]), True
    if clock := _TWO.fullmatch(text):
        if _SAID_MINUTES.search(window):
            return _sum(clock, _PART_S[2:]), True
        if _SAID_HOURS.search(window):
            return _sum(clock, _PART_S[1:3]), True
    return None, False


def _sum(clock: re.Match[str], seconds: tuple[int, ...]) -> float:
    return sum(float(part) * s for part, s in zip(clock.groups(), seconds, strict=True))
