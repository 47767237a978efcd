"""Draws the figures of the pages anew from their stored data: ``python -m docs.builders.figures``.

Nothing is measured. ``docs/figures/data/NAME.json`` has the kind of a figure, its title, its axes
and its values; ``docs/figures/NAME.svg`` is drawn from it. The index of the figures
(``docs/results/figures.md``) says which command measured them, in how many minutes and at which
commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotune.report.figures import COLOURS, INK, Mark, bars, curve, dots, drawing

FOLDER = Path(__file__).parents[1] / "figures"
DATA = FOLDER / "data"


def _curve(data: dict[str, Any]) -> str:
    lines = {
        name: {int(x): (value, low, high) for x, value, low, high in points}
        for name, points in data["lines"].items()
    }
    return curve(lines, data["title"], data["x"], data["y"])


def _marks(data: dict[str, Any]) -> list[Mark]:
    return [Mark(*row[:5], highlight=bool(row[5])) for row in data["marks"]]


def _bars(data: dict[str, Any]) -> str:
    return bars(data["title"], data["x"], _marks(data))


def _dots(data: dict[str, Any]) -> str:
    return dots(data["title"], data["x"], _marks(data), data["reference"])


def _blocks(data: dict[str, Any]) -> str:
    """Runs of both settings in blocks, which are strips."""
    with drawing(data["title"], data["x"], data["y"], 3.0) as figure:
        for block in range(0, data["blocks"], 2):
            figure.axes.axvspan(
                2 * block - 0.5, 2 * block + 1.5, color=INK, alpha=0.07, linewidth=0
            )
        for (name, points), colour, mark in zip(data["runs"].items(), COLOURS, "os", strict=False):
            figure.axes.plot(
                *zip(*points, strict=True), mark, color=colour, label=name, markersize=5
            )
        figure.axes.set_ylim(bottom=0)
        figure.axes.figure.legend(loc="outside right upper")
    return figure.svg


def _proof(data: dict[str, Any]) -> str:
    """The gain with its interval at each look; the last one has its decision."""
    with drawing(data["title"], data["x"], data["y"], 3.0) as figure:
        figure.axes.axhline(0, color=INK, linestyle="--", linewidth=1)
        for blocks, gain, low, high, outcome in data["looks"]:
            colour = COLOURS[0] if outcome else COLOURS[7]
            figure.axes.plot([blocks, blocks], [low, high], color=colour, linewidth=2)
            figure.axes.plot(blocks, gain, "o", color=colour, markersize=7)
            if outcome:
                figure.axes.annotate(
                    outcome, (blocks, gain), xytext=(8, 0), textcoords="offset points",
                    va="center", weight="bold",
                )  # fmt: skip
        gains = data["gains"]
        figure.axes.plot(
            range(1, len(gains) + 1), gains, ".", color=INK, alpha=0.5, label="single blocks"
        )
        figure.axes.set_xlim(0, data["planned"][-1] + 1)
        figure.axes.set_xticks(data["planned"])
        figure.axes.figure.legend(loc="outside right upper")
    return figure.svg


def _race(data: dict[str, Any]) -> str:
    """The runs that a race gave to each setting, and the setting's true gain."""
    with drawing(data["title"], data["x"], "", 3.2) as figure:
        figure.axes.axvline(0, color=INK, linestyle="--", linewidth=1)
        for place, (gain, runs) in enumerate(data["settings"]):
            figure.axes.plot(runs, [place] * len(runs), "o", color=COLOURS[0])
            figure.axes.plot(gain, place, "|", color=COLOURS[1], markersize=16)
        labels = [f"{len(runs)} run{'s' if len(runs) > 1 else ''}" for _, runs in data["settings"]]
        figure.axes.set_yticks(range(len(labels)), labels)
        figure.axes.invert_yaxis()
        figure.axes.plot([], [], "o", color=COLOURS[0], label="one run")
        figure.axes.plot([], [], "|", color=COLOURS[1], markersize=12, label="true gain")
        figure.axes.figure.legend(loc="outside right upper")
    return figure.svg


KINDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "bars": _bars,
    "blocks": _blocks,
    "curve": _curve,
    "dots": _dots,
    "proof": _proof,
    "race": _race,
}


def figure_of(path: Path) -> str:
    """The SVG text of a file with data."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return KINDS[data["kind"]](data)


def main() -> None:
    """Draw every figure whose data differ from what is drawn."""
    for path in sorted(DATA.glob("*.json")):
        picture = FOLDER / f"{path.stem}.svg"
        text = figure_of(path)
        if not picture.exists() or picture.read_text(encoding="utf-8") != text:
            picture.write_text(text, encoding="utf-8")
            print(picture)


if __name__ == "__main__":
    main()
