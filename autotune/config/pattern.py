"""Patterns of a program's figures: their checks, and the unit in the words beside their group."""

from __future__ import annotations

import re

from autotune.errors import UsageError
from runner.figure.metric import rate_words, time_words
from runner.figure.unit import LABEL, UNKNOWN, Unit, unit_around, unit_of_key

_PIECES = re.compile(
    r"""
      (?P<group>\((?!\?))                         # the group around the number
    | (?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<blank>\\s|[ ])
    | (?P<digit>\\d)
    | (?P<any>\\[SwWD]|\.)
    | (?P<nothing>\\[bBAZ]|[\^$]|\(\?[aiLmsux]+\)|\(\?:|[)])
    | \\(?P<escaped>.)
    | (?P<plain>[^*+?{])
    """,
    re.VERBOSE,
)
_REPETITION = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\??\+?")
_BREAK = "; "
"""Any text: words on its other side do not belong to the number."""


def unit_in_pattern(pattern: str) -> Unit:
    """The unit in a metric's pattern, or in the key of ``json:KEY``.

    Alternatives are ambiguous.
    """
    if pattern.startswith("json:"):
        return unit_of_key(pattern[5:])
    group = re.search(r"(?<!\\)\((?!\?)", pattern)
    if group is None or "|" in pattern or "(?=" in pattern or "(?!" in pattern or "(?<" in pattern:
        return UNKNOWN
    end = _end_of_group(pattern, group.start())
    before, behind = _plain(pattern[: group.start()]), _plain(pattern[end:])
    return unit_around(before[-LABEL:], behind[:LABEL])


def _end_of_group(pattern: str, at: int) -> int:
    depth = 0
    for piece in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", pattern[at:]):
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth == 0:
            return at + piece.end()
    return len(pattern)


def _plain(pattern: str) -> str:
    text, at = "", 0
    while at < len(pattern):
        piece = _PIECES.match(pattern, at)
        if piece is None:
            at += 1
            continue
        at = piece.end()
        repetition = _REPETITION.match(pattern, at)
        at = at if repetition is None else repetition.end()
        kind = piece.lastgroup
        if kind == "class" and re.search(r"\d", piece[0]):
            text += " 0 " if not text.endswith("0 ") else ""
        elif kind == "digit":
            text += " 0 "
        elif kind == "class" and piece[0].strip("[]^\\s \t:=") == "":
            text += ": " if ":" in piece[0] or "=" in piece[0] else " "
        elif kind in ("any", "class", "group"):
            text += _BREAK
        elif kind == "blank":
            text += " "
        elif kind == "escaped":
            text += piece["escaped"]
        elif kind == "plain":
            text += piece["plain"]
    return text


def check_pattern(option: str, pattern: str | None, groups: int) -> None:
    """Check a pattern before anything runs; it must have ``groups`` groups.

    Raises UsageError, which begins with ``option``, for a pattern that is not valid.
    """
    if pattern is None or pattern.startswith("json:"):
        if pattern == "json:":
            raise UsageError(
                f"{option} json: has no key; expected json:KEY, such as json:time_s",
                code="metric.syntax",
            )
        return
    try:
        regex = re.compile(pattern)
    except re.error as problem:
        raise UsageError(
            f"{option} is not a regular expression: {problem} in {pattern!r}", code="metric.pattern"
        ) from None
    if groups and regex.groups != groups:
        raise UsageError(
            f"{option} must have exactly one group, around the number; {pattern!r} has "
            f"{regex.groups}.  Example: 'Time in seconds *= *(\\S+)'",
            code="metric.pattern",
        )


def check_figure(
    metric: str | None, rate: str | None, metric_option: str, rate_option: str
) -> None:
    """Check the pattern of a time and that of a rate before anything runs; one may be given.

    Raises UsageError for both, for one that is not valid, and for a rate in the place of a time or
    a time in the place of a rate.
    """
    if metric is not None and rate is not None:
        raise UsageError(
            f"{metric_option} and {rate_option} were both given; give only one of them: what the "
            "program prints is a time or a rate",
            code="metric.two",
        )
    check_pattern(metric_option, metric, 1)
    check_pattern(rate_option, rate, 1)
    if metric is not None and (unit := unit_in_pattern(metric)).kind == "rate":
        raise UsageError(rate_words(metric_option, metric, unit), code="metric.rate")
    if rate is not None and (unit := unit_in_pattern(rate)).kind == "time":
        raise UsageError(time_words(rate_option, rate, unit), code="metric.time")
