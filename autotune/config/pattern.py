"""The plain words in a metric's pattern: those beside its group, as in a line of output."""

from __future__ import annotations

import re

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
