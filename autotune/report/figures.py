"""Figures as SVG text, drawn by matplotlib, for light pages, dark pages and files.

Lines and text have the colour of the text around the figure (``currentColor``). Marks have colours
that colour-blind readers can tell apart (Okabe and Ito). In a separate file a figure is black on
white; a page overrides that. The same data give the same text.

The kinds of figures: dots, bars, curves, steps and boxes; heat maps of the best choices, in words
and colours; matrices; means of levels (Pellegrini, Figure 4.9).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from autotune.anova.factors import Factor
from autotune.anova.oneway import Response

if TYPE_CHECKING:
    from matplotlib.axes import Axes


HIGHLIGHT = "#0072b2"
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f"),
)
DASHES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 2)), (0, (3, 1, 1, 1)), (0, (8, 3)))
INK = "#010203"
"""Placeholder of the page's own colour while matplotlib draws."""
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_IDS = re.compile(r' id="[A-Za-z0-9.]+_\d+"')
_WIDTH = 7.0
ABREAST = 3
"""Entries of a legend below a figure in one row."""
DOTS = 500
"""Largest number of values drawn for a box; more are thinned evenly by rank."""
_INK_KEYS = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
    "grid.color",
)
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "autotune",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "axes.axisbelow": True,
    "legend.frameon": False,
    **dict.fromkeys(_INK_KEYS, INK),
    "grid.alpha": 0.15,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

Point = tuple[float, float, float]
"""Value, low end and high end of its interval."""


@dataclass(frozen=True)
class Mark:
    """One row: a value with the ends of its interval, a note at the right, and emphasis."""

    label: str
    value: float
    lo: float
    hi: float
    note: str = ""
    highlight: bool = False


class Drawing:
    """A figure under construction: its axes, and its SVG text at the end."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.svg = ""


@contextmanager
def drawing(title: str, x_name: str, y_name: str, height: float) -> Iterator[Drawing]:
    """A figure of 7 x ``height`` inches; ``svg`` is set after the block."""
    # The import is slow, and only a few commands draw.
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        # The title spans the whole figure: long labels would leave no room above the axes.
        figure.suptitle(plain(title), x=0.01, ha="left")
        axes.set_xlabel(plain(x_name))
        axes.set_ylabel(plain(y_name))
        new_drawing = Drawing(axes)
        yield new_drawing
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    new_drawing.svg = _tidy(text.getvalue(), title)


def _tidy(svg: str, title: str) -> str:
    """The SVG element, as wide as the page allows, in the page's colour, without repeated ids."""
    body = svg[svg.index("<svg") :].strip()
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    head += f' role="img" aria-label={quoteattr(title)} color="black" style="background: white"'
    rest = _METADATA.sub("", _IDS.sub("", rest))
    return f"{head}>{rest}".replace(INK, "currentColor") + "\n"


def plain(text: str) -> str:
    """The text without mathematics: a dollar sign stays a dollar sign."""
    return text.replace("$", r"\$")


def dots(title: str, axis: str, marks: Sequence[Mark], reference: float = 0.0) -> str:
    """A dot with an interval for each mark, and a dashed line at ``reference``; SVG text."""
    with drawing(title, axis, "", _rows(len(marks))) as figure:
        figure.axes.axvline(reference, color=INK, linestyle="--", linewidth=1)
        for place, mark in enumerate(marks):
            colour = HIGHLIGHT if mark.highlight else INK
            if math.isfinite(mark.value):
                figure.axes.plot(mark.value, place, "o", color=colour, markersize=6)
        _intervals(figure.axes, marks)
        _labels(figure.axes, marks)
    return figure.svg


def bars(title: str, axis: str, marks: Sequence[Mark]) -> str:
    """A bar from 0 for each mark, with its interval; SVG text."""
    with drawing(title, axis, "", _rows(len(marks))) as figure:
        figure.axes.axvline(0.0, color=INK, linewidth=1)
        for place, mark in enumerate(marks):
            colour = HIGHLIGHT if mark.highlight else INK
            if math.isfinite(mark.value):
                figure.axes.barh(place, mark.value, height=0.6, color=colour, alpha=0.5)
        _intervals(figure.axes, marks)
        _labels(figure.axes, marks)
    return figure.svg


def _rows(count: int) -> float:
    return 1.0 + 0.26 * max(count, 1)


def _intervals(axes: Axes, marks: Sequence[Mark]) -> None:
    """A line for each interval; an arrow to the edge shows that an end is open."""
    ends = [end for mark in marks for end in (mark.lo, mark.hi) if math.isfinite(end)]
    if ends:
        axes.update_datalim([(end, 0) for end in ends])
        axes.autoscale_view(scaley=False)
    left, right = axes.get_xlim()
    axes.set_xlim(left, right)
    for place, mark in enumerate(marks):
        is_closed = math.isfinite(mark.lo), math.isfinite(mark.hi)
        if not any(is_closed):
            continue
        colour = HIGHLIGHT if mark.highlight else INK
        span = (mark.lo if is_closed[0] else left, mark.hi if is_closed[1] else right)
        axes.plot(span, (place, place), color=colour, linewidth=1.5)
        if not all(is_closed):
            edge, sign = (right, ">") if is_closed[0] else (left, "<")
            axes.plot(edge, place, sign, color=colour, markersize=6, clip_on=False)


def _labels(axes: Axes, marks: Sequence[Mark]) -> None:
    axes.set_yticks(range(len(marks)), [plain(mark.label) for mark in marks])
    axes.set_ylim(max(len(marks), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    for place, mark in enumerate(marks):
        if mark.note:
            axes.annotate(
                plain(mark.note), (1.01, place), xycoords=("axes fraction", "data"), va="center"
            )


def curve(lines: Mapping[str, Mapping[int, Point]], title: str, x_name: str, y_name: str) -> str:
    """A line with intervals for each name over powers of two; a thin line marks 1.  SVG text."""
    with drawing(title, x_name, y_name, 4.0) as figure:
        axes = figure.axes
        axes.axhline(1.0, color=INK, linewidth=0.8)
        for number, (name, points) in enumerate(lines.items()):
            xs = sorted(points)
            values = [points[x][0] for x in xs]
            below = [max(points[x][0] - points[x][1], 0.0) for x in xs]
            above = [max(points[x][2] - points[x][0], 0.0) for x in xs]
            axes.errorbar(
                xs, values, yerr=[below, above], label=plain(name), marker="o", markersize=4,
                elinewidth=0.8, **_style(number),
            )  # fmt: skip
        every = sorted({x for points in lines.values() for x in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(every, [str(x) for x in every])
        axes.minorticks_off()
        axes.grid(axis="y")
        axes.figure.legend(loc="outside right upper")
    return figure.svg


def steps(
    lines: Mapping[str, Sequence[tuple[float, float]]], title: str, x_name: str, y_name: str
) -> str:
    """The best value so far for each name, as steps (x, value); a thin line marks 1.  SVG text."""
    with drawing(title, x_name, y_name, 3.2) as figure:
        figure.axes.axhline(1.0, color=INK, linewidth=0.8)
        for number, (name, points) in enumerate(lines.items()):
            figure.axes.step(
                *zip(*points, strict=True), where="post", label=plain(name), **_style(number)
            )
        figure.axes.grid(axis="y")
        if len(lines) > 1:
            figure.axes.figure.legend(loc="outside right upper")
    return figure.svg


def bands(
    lines: Mapping[str, Sequence[Sequence[tuple[float, float]]]],
    title: str,
    x_name: str,
    y_name: str,
) -> str:
    """For each name the median of its step curves (x, value), with a band; a thin line marks 1.

    The band holds the middle 80 % of the curves, all of them if there are fewer than ten. A curve
    that has ended keeps its last value.  SVG text.
    """
    import numpy as np

    with drawing(title, x_name, y_name, 3.2) as figure:
        figure.axes.axhline(1.0, color=INK, linewidth=0.8)
        for number, (name, curves) in enumerate(lines.items()):
            xs = np.unique([x for points in curves for x, _ in points])
            values = np.array([_held(points, xs) for points in curves])
            edge = 10 if len(curves) >= 10 else 0
            low, middle, high = np.percentile(values, (edge, 50, 100 - edge), axis=0)
            style = _style(number)
            label = f"{name} ({len(curves)})" if len(curves) > 1 else name
            figure.axes.step(xs, middle, where="post", label=plain(label), **style)
            if len(curves) > 1:
                figure.axes.fill_between(
                    xs, low, high, step="post", color=style["color"], alpha=0.15, linewidth=0
                )
        figure.axes.grid(axis="y")
        figure.axes.figure.legend(loc="outside right upper")
    return figure.svg


def _held(points: Sequence[tuple[float, float]], xs: Any) -> Any:
    """The value of a step curve at each of ``xs``; the first value holds before it begins."""
    import numpy as np

    places, values = zip(*points, strict=True)
    return np.array(values)[np.maximum(np.searchsorted(places, xs, side="right") - 1, 0)]


def boxes(title: str, axis: str, groups: Mapping[str, Sequence[float]], reference: float) -> str:
    """A box for each name with its values as dots, and a dashed line at ``reference``; SVG text.

    The box is computed from all values. At most ``DOTS`` values are drawn, from the smallest to the
    largest, because a page with a hundred thousand dots is too large.
    """
    with drawing(title, axis, "", _rows(len(groups)) + 0.2) as figure:
        figure.axes.axvline(reference, color=INK, linestyle="--", linewidth=1)
        names = list(groups)
        line = {"color": INK}
        figure.axes.boxplot(
            [list(groups[name]) for name in names],
            positions=range(len(names)), orientation="horizontal", showfliers=False, widths=0.5,
            boxprops=line, whiskerprops=line, capprops=line,
            medianprops={"color": HIGHLIGHT, "linewidth": 2},
        )  # fmt: skip
        for place, name in enumerate(names):
            values = _thin(groups[name])
            figure.axes.plot(
                values, [place] * len(values), ".", color=INK, alpha=0.35, markersize=4
            )
        _labels(figure.axes, [Mark(n, 0, 0, 0, f"n = {len(groups[n])}") for n in names])
    return figure.svg


def _thin(values: Sequence[float]) -> Sequence[float]:
    if len(values) <= DOTS:
        return values
    ascending = sorted(values)
    return [ascending[round(i * (len(ascending) - 1) / (DOTS - 1))] for i in range(DOTS)]


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 1.8,
    }


def matrix(
    title: str, x_name: str, y_name: str, values: Sequence[Sequence[float]], group: int = 1
) -> str:
    """A square for each row and column, the darker the larger its value; SVG text.

    A row or column stands for ``group`` numbers, from 0 on.  Zero is blank; the scale of the others
    is logarithmic.
    """
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    size = len(values)
    logs = [math.log10(value) for row in values for value in row if value > 0]
    low, high = (min(logs) - 0.5, max(logs)) if logs else (0.0, 1.0)
    with drawing(title, x_name, y_name, 5.0) as figure:
        axes = figure.axes
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                if value > 0:
                    share = (math.log10(value) - low) / (high - low)
                    colour = to_rgba(HIGHLIGHT, 0.1 + 0.9 * share)
                    axes.add_patch(Rectangle((x, y), 1, 1, linewidth=0, color=colour))
        step = max(1, size // 8)
        places = range(0, size, step)
        axes.set_xticks([place + 0.5 for place in places], [str(n * group) for n in places])
        axes.set_yticks([place + 0.5 for place in places], [str(n * group) for n in places])
        axes.set_xlim(0, size)
        axes.set_ylim(size, 0)
        axes.set_aspect("equal")
    return figure.svg


_HATCHES = ("////", "....", "xxxx")


def heat_map(
    title: str,
    x_name: str,
    y_name: str,
    columns: Sequence[str],
    rows: Sequence[str],
    kinds: Sequence[Sequence[str]],
    words: Sequence[Sequence[str]],
    neutral: str = "",
) -> str:
    """A cell for each row and column, coloured by its kind, with its words in it; SVG text.

    The kind ``neutral`` stays grey.  If there are more kinds than colours, the colours repeat with
    hatching.
    """
    from matplotlib.patches import Patch, Rectangle

    order = [k for k in dict.fromkeys(kind for row in kinds for kind in row) if k != neutral]
    looks = {kind: _look(number) for number, kind in enumerate(order)}
    if any(neutral in row for row in kinds):
        looks[neutral] = {"facecolor": INK, "alpha": 0.08}
    below = math.ceil(len(looks) / ABREAST)
    with drawing(title, x_name, y_name, 1.2 + 0.36 * len(rows) + 0.22 * below) as figure:
        axes = figure.axes
        for y, (kind_row, word_row) in enumerate(zip(kinds, words, strict=True)):
            for x, (kind, word) in enumerate(zip(kind_row, word_row, strict=True)):
                axes.add_patch(Rectangle((x, y), 1, 1, linewidth=0, **looks[kind]))
                axes.text(x + 0.5, y + 0.5, plain(word), ha="center", va="center", fontsize=7)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], list(columns), fontsize=7)
        axes.set_yticks([y + 0.5 for y in range(len(rows))], list(rows))
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(rows), 0)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        handles = [Patch(label=plain(kind), linewidth=0, **look) for kind, look in looks.items()]
        axes.figure.legend(
            handles=handles, loc="outside lower left", ncols=ABREAST, handlelength=1.2
        )
    return figure.svg


def _look(number: int) -> dict[str, Any]:
    """The style of a kind: a colour, or, when all are used, the same colours hatched."""
    repeats = number // len(COLOURS)
    hatch = {"hatch": _HATCHES[(repeats - 1) % len(_HATCHES)], "edgecolor": INK} if repeats else {}
    return {"facecolor": COLOURS[number % len(COLOURS)], "alpha": 0.4, **hatch}


AXES: dict[Response, str] = {
    "gain": "mean gain over the default, as a share of the best known gain (95 % interval)",
    "log": "mean of log(T default / T), 95 % interval",
}


def level_means(factors: Sequence[Factor], response: Response) -> list[str]:
    """One figure for each significant factor, the strongest first."""
    significant = sorted((f for f in factors if f.significant), key=lambda f: -f.omega2)
    return [factor_figure(factor, response) for factor in significant]


def factor_figure(factor: Factor, response: Response) -> str:
    """The mean of each level of one factor with its interval; the best level is marked."""
    marks = [
        Mark(m.level, m.mean, m.lo, m.hi, f"n = {m.n}", m.level == factor.best)
        for m in factor.levels
    ]
    return dots(factor.name, AXES[response], marks)
