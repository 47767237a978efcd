"""Cells of a long measurement: each is kept once it is decided, and the time that is left.

A benchmark of many cells keeps the row of each as a file of a folder, so that the same command goes
on where it was interrupted. The time of open cells is what was expected of them, times how much
longer than expected the decided ones of the same group took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import table
from runner.files import write_atomically

START_S = 1.5
"""Seconds that a launch takes beside the program's own figure: start, end and the guard."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A cell: the name of its file, the seconds expected, and the cells with the same pace."""

    name: str
    expected_s: float
    group: str = ""


class Cells:
    """The rows of decided cells in a folder; ``decided`` says whether a row is final."""

    def __init__(self, folder: Path, cells: Sequence[Cell], decided: Callable[[Row], bool]) -> None:
        self.folder = folder
        self.cells = tuple(cells)
        self._decided = decided

    def kept(self, name: str) -> Row | None:
        """The row of a decided cell."""
        path = self.folder / f"{name}.json"
        row: Row = json.loads(path.read_text()) if path.exists() else {}
        return row if row and self._decided(row) else None

    def open(self) -> list[Cell]:
        """The cells that are not decided."""
        return [cell for cell in self.cells if self.kept(cell.name) is None]

    def left_s(self) -> float:
        """Seconds that the open cells will take."""
        paces: dict[str, list[float]] = {}
        for cell in self.cells:
            row = self.kept(cell.name)
            if row is not None and row.get("wall_s"):
                paces.setdefault(cell.group, []).append(row["wall_s"] / cell.expected_s)
        every = [pace for own in paces.values() for pace in own]
        return sum(cell.expected_s * _mean(paces.get(cell.group) or every) for cell in self.open())

    def complete(self, measure: Callable[[Cell], Row], words: Callable[[Row], str]) -> list[Row]:
        """The rows of all cells: those kept, and those that ``measure`` returns now.

        ``wall_s`` is added to a row that has none. Each is kept if it is decided, and told with the
        time that is left.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        print(self.summary(), file=sys.stderr, flush=True)
        rows = []
        for number, cell in enumerate(self.cells, start=1):
            row = self.kept(cell.name)
            if row is None:
                begin = time.monotonic()
                row = measure(cell)
                row.setdefault("wall_s", round(time.monotonic() - begin, 1))
                if self._decided(row):
                    write_atomically(
                        self.folder / f"{cell.name}.json", json.dumps(row, indent=2) + "\n"
                    )
                left = f"; {minutes(self.left_s())} left" if number < len(self.cells) else ""
                place = f"{number}/{len(self.cells)} {cell.name}"
                print(f"{place}: {words(row)}{left}", file=sys.stderr, flush=True)
            rows.append(row)
        return rows

    def summary(self) -> str:
        """How many cells there are, and how long the open ones take."""
        count, left = len(self.cells), len(self.open())
        return f"{count} cells, {count - left} decided; the others: {minutes(self.left_s())}"

    def show(self) -> None:
        """Print each cell with its state, and the time that the open ones take."""
        left = {cell.name for cell in self.open()}
        table(
            [
                {"cell": cell.name, "state": "open" if cell.name in left else "decided",
                 "expected": minutes(cell.expected_s)}
                for cell in self.cells
            ]
        )  # fmt: skip
        print(self.summary())


def minutes(seconds: float) -> str:
    return f"about {seconds / 60:.0f} min" if seconds >= 90 else f"about {seconds:.0f} s"


def _mean(paces: Sequence[float]) -> float:
    return sum(paces) / len(paces) if paces else 1.0
