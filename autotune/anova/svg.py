"""Small drawings as SVG text: means of levels with intervals, and bars.

Written by hand: nothing the project depends on draws figures.  Colours come from the page
(``currentColor``), so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 560
ROW = 20
LEFT = 150
RIGHT = 70
TOP = 34
BOTTOM = 34
MARKED = "#0072b2"
PLAIN = "currentColor"


@dataclass(frozen=True)
class Mark:
    """One row: a value with the ends of its interval, a note at the right, and emphasis."""

    label: str
    value: float
    lo: float
    hi: float
    note: str = ""
    marked: bool = False


def dots(title: str, axis: str, marks: Sequence[Mark], reference: float = 0.0) -> str:
    """A dot with an interval per mark, and a dashed line at ``reference``."""
    return _draw(title, axis, marks, reference, bars=False)


def bars(title: str, axis: str, marks: Sequence[Mark]) -> str:
    """A bar from 0 per mark, with its interval."""
    return _draw(title, axis, marks, 0.0, bars=True)


def _draw(title: str, axis: str, marks: Sequence[Mark], reference: float, *, bars: bool) -> str:
    height = TOP + ROW * max(len(marks), 1) + BOTTOM
    ends = [e for m in marks for e in (m.lo, m.hi, m.value) if math.isfinite(e)]
    low, high = min([*ends, reference]), max([*ends, reference])
    step = tick_step(high - low)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    span = max(high - low, step)

    def x(value: float) -> float:
        return LEFT + (min(max(value, low), high) - low) / span * (WIDTH - LEFT - RIGHT)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="12">'
        ),
        _text(LEFT, 18, title, "start", "bold"),
    ]
    bottom = height - BOTTOM
    for number in range(round(span / step) + 1):
        at = low + number * step
        parts.append(_line(x(at), TOP, x(at), bottom, "0.15"))
        parts.append(_text(x(at), bottom + 14, f"{at:.4g}", "middle"))
    parts.append(_line(x(reference), TOP, x(reference), bottom, "0.9", "4 3"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 29, axis, "middle"))
    for number, mark in enumerate(marks):
        y = TOP + ROW * (number + 0.5)
        parts += _mark(mark, y, x, reference, bars)
    return "\n".join([*parts, "</svg>"])


def _mark(
    mark: Mark, y: float, x: Callable[[float], float], reference: float, bars: bool
) -> list[str]:
    colour = MARKED if mark.marked else PLAIN
    parts = [_text(LEFT - 6, y + 4, mark.label, "end")]
    if mark.note:
        parts.append(_text(WIDTH - RIGHT + 6, y + 4, mark.note, "start"))
    if not math.isfinite(mark.value):
        return parts
    if bars:
        ends = sorted((x(reference), x(mark.value)))
        parts.append(
            f'<rect x="{ends[0]:.1f}" y="{y - 6:.1f}" width="{ends[1] - ends[0]:.1f}" '
            f'height="12" fill="{colour}" opacity="0.5"/>'
        )
    if math.isfinite(mark.lo) and math.isfinite(mark.hi):
        parts.append(_line(x(mark.lo), y, x(mark.hi), y, "1", colour=colour, width=1.5))
    if not bars:
        parts.append(f'<circle cx="{x(mark.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    return parts


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten that gives at most eight steps."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-6)) - 0.3)
    return next(f * power for f in (1, 2, 5, 10) if span / (f * power) <= 8)


def _line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    opacity: str,
    dashes: str = "",
    colour: str = PLAIN,
    width: float = 1,
) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-dasharray="{dashes}" opacity="{opacity}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="currentColor">{escape(words)}</text>'
    )
