"""A line figure as SVG: one line per name over a logarithmic axis, with intervals.

Written by hand, because nothing the project depends on draws figures and this is all it needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.sax.saxutils import escape

Point = tuple[float, float, float]
"""Value, low and high end of its interval."""

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 110, 40, 50
# Told apart also by the colour-blind (Okabe and Ito); dashes tell them apart in grey.
STYLES = (
    ("#0072b2", ""),
    ("#d55e00", "6 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "8 3 2 3"),
    ("#e69f00", "4 2"),
    ("#56b4e9", "1 2"),
    ("#000000", "10 4"),
    ("#8c6d31", "3 1"),
)


class _Frame:
    """Where values lie on the page."""

    def __init__(self, xs: list[int], low: float, high: float) -> None:
        self.xs = xs
        self._low, self._span = low, high - low
        self._first = math.log2(xs[0])
        self._octaves = max(1e-9, math.log2(xs[-1]) - self._first)

    def x(self, value: int) -> float:
        share = (math.log2(value) - self._first) / self._octaves
        return LEFT + 15 + share * (WIDTH - LEFT - RIGHT - 30)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self._low) / self._span * (HEIGHT - TOP - BOTTOM)


def curve(lines: Mapping[str, Mapping[int, Point]], title: str, x_name: str, y_name: str) -> str:
    """The figure as text; a thin line marks the value 1.  At most eight lines."""
    xs = sorted({x for points in lines.values() for x in points})
    ends = [end for points in lines.values() for point in points.values() for end in point]
    step = tick_step(max(*ends, 1.0) - min(*ends, 1.0))
    low = math.floor(min(*ends, 1.0) / step) * step
    high = math.ceil(max(*ends, 1.0) / step + 1e-9) * step
    frame = _Frame(xs, low, max(high, low + step))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, title, "middle", 14),
        *_axes(frame, low, high, step, x_name, y_name),
    ]
    named = zip(lines.items(), STYLES, strict=False)
    for number, ((name, points), (colour, dashes)) in enumerate(named):
        parts += _line(frame, points, colour, dashes)
        y = TOP + 20 + 20 * number
        parts.append(_stroke(WIDTH - RIGHT + 10, y, WIDTH - RIGHT + 35, y, colour, dashes, 2))
        parts.append(_text(WIDTH - RIGHT + 40, y + 4, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten that gives four to ten steps."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-3)) - 0.3)
    return next(f * power for f in (1, 2, 5, 10) if span / (f * power) <= 8)


def _axes(
    frame: _Frame, low: float, high: float, step: float, x_name: str, y_name: str
) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [_stroke(LEFT, frame.y(1.0), right, frame.y(1.0), "#555", "", 1)]
    for n in range(round((high - low) / step) + 1):
        value = low + n * step
        parts.append(_stroke(LEFT, frame.y(value), right, frame.y(value), "#ddd", "", 0.5))
        parts.append(_text(LEFT - 6, frame.y(value) + 4, f"{value:.6g}", "end"))
    parts += [_text(frame.x(x), bottom + 18, str(x), "middle") for x in frame.xs]
    parts += [_stroke(LEFT, TOP, LEFT, bottom, "black", "", 1)]
    parts += [_stroke(LEFT, bottom, right, bottom, "black", "", 1)]
    middle = (TOP + bottom) / 2
    turned = _text(16, middle, y_name, "middle").replace(
        "<text", f'<text transform="rotate(-90 16 {middle:g})"'
    )
    return [*parts, _text((LEFT + right) / 2, bottom + 38, x_name, "middle"), turned]


def _line(frame: _Frame, points: Mapping[int, Point], colour: str, dashes: str) -> list[str]:
    places = [(frame.x(x), frame.y(points[x][0])) for x in sorted(points)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [
        (
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/>'
        )
    ]
    for x in points:
        _, low, high = points[x]
        at = frame.x(x)
        parts.append(_stroke(at, frame.y(low), at, frame.y(high), colour, "", 1))
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
    return parts


def _stroke(
    x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str, width: float
) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-dasharray="{dashes}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )
