"""Parallel coordinates: every trial as one line over the levels of its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.report.figures import HIGHLIGHT, INK, drawing, plain
from autotune.space.setting import read_value
from autotune.store import TrialRecord

LINES = 200
"""Number of trials drawn: the fastest ones."""
AXES = 10
"""Number of parameters drawn: those whose levels differ most in speed."""
UNSET = "unset"
_LONGEST = 18


def parallel_coordinates(trials: Sequence[TrialRecord]) -> str:
    """SVG text: an axis for each parameter that varied, a line for each trial with an estimate.

    The fastest tenth is drawn in colour, the fastest trial thick. The last axis is the time ratio.
    "" if fewer than two trials or parameters can be drawn.
    """
    fastest = sorted(
        (t for t in trials if t.estimate is not None and t.state == "ok"),
        key=lambda t: t.estimate or 0.0,
    )[:LINES]
    names = sorted({name for t in fastest for name in t.setting})
    levels = {name: _levels(fastest, name) for name in names}
    names = sorted((n for n in names if len(levels[n]) > 1), key=lambda n: -_spread(fastest, n))
    names = names[:AXES]
    if len(fastest) < 2 or len(names) < 2:
        return ""
    title = f"The {len(fastest)} fastest settings of the search (as measured, before the proof)"
    low, high = fastest[0].estimate or 0.0, fastest[-1].estimate or 0.0
    with drawing(title, "", "", 4.6) as figure:
        axes = figure.axes
        best = max(len(fastest) // 10, 1)
        for rank in reversed(range(len(fastest))):
            trial = fastest[rank]
            heights = [_height(levels[n], _text(trial, n)) for n in names]
            heights.append(((trial.estimate or 0.0) - low) / ((high - low) or 1.0))
            axes.plot(
                range(len(heights)),
                heights,
                color=HIGHLIGHT if rank < best else INK,
                alpha=0.9 if rank < best else 0.18,
                linewidth=2.6 if rank == 0 else 1.0,
            )
        for place, name in enumerate(names):
            axes.axvline(place, color=INK, linewidth=0.8)
            for level in levels[name]:
                axes.annotate(
                    plain(_short(level)),
                    (place, _height(levels[name], level)),
                    xytext=(3, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7,
                )
        axes.axvline(len(names), color=INK, linewidth=0.8)
        for value, height in ((low, 0.0), (high, 1.0)):
            axes.annotate(
                f"{value:.2f}",
                (len(names), height),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
        axes.set_xticks(
            range(len(names) + 1),
            [plain(name) for name in (*names, "time ratio")],
            rotation=25,
            ha="right",
            fontsize=7,
        )
        axes.set_yticks([])
        axes.set_xlim(-0.1, len(names) + 0.4)
        axes.spines[:].set_visible(False)
    return figure.svg


def _text(trial: TrialRecord, name: str) -> str:
    return str(trial.setting[name]) if name in trial.setting else UNSET


def _levels(trials: Sequence[TrialRecord], name: str) -> list[str]:
    """The levels that occur, numbers in their order, unset first."""
    texts = {_text(trial, name) for trial in trials}
    return sorted(texts, key=_order)


def _order(level: str) -> tuple[int, float, str]:
    if level == UNSET:
        return 0, 0.0, ""
    value = read_value(level)
    return (2, 0.0, level) if isinstance(value, str) else (1, float(value), level)


def _spread(trials: Sequence[TrialRecord], name: str) -> float:
    """Difference between the largest and the smallest mean ratio of a parameter's levels."""
    groups: dict[str, list[float]] = {}
    for trial in trials:
        groups.setdefault(_text(trial, name), []).append(trial.estimate or 0.0)
    means = [sum(values) / len(values) for values in groups.values()]
    return max(means) - min(means)


def _height(levels: Sequence[str], level: str) -> float:
    return levels.index(level) / max(len(levels) - 1, 1)


def _short(level: str) -> str:
    return level if len(level) <= _LONGEST else f"{level[: _LONGEST - 1]}…"
