"""Stored results of contestants, so that an interrupted benchmark continues with the others.

There is one file per contestant. The name of their folder is a hash of all that the figures follow
from: the code of the tuner and of this benchmark, the recordings, and the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.space import Setting
from runner import files
from runner.files import write_atomically

ROOT = Path(__file__).parents[2]
CODE = (
    *(f"autotune/{layer}" for layer in ("space", "stats", "strategies", "study")),
    *("autotune/datasets", "autotune/prediction", "benchmarks"),
)
"""The code that decides in a search, and the code of its landscapes."""

Figures = tuple[list[tuple[int, float, Setting]], list[float], int | None]
"""A course without its landscape: named settings, own seconds, where it stopped."""
Played = list[tuple[Figures, bool]]
"""For each turn: the figures, and whether the study of this turn made a false recommendation."""


@dataclass(frozen=True)
class Checkpoint:
    """The stored results; with ``anew`` they are replaced and not read."""

    folder: Path
    anew: bool = False

    @classmethod
    def of(cls, recordings: Iterable[Path], rules: object, anew: bool = False) -> Checkpoint:
        """The place of results with this code, these recordings and ``rules``."""
        state = hashlib.sha256(json.dumps(rules, sort_keys=True).encode())
        code = [path for place in CODE for path in (ROOT / place).rglob("*.py")]
        data = [path for folder in recordings for path in folder.rglob("*") if path.is_file()]
        for path in [*sorted(code), *sorted(data)]:
            state.update(f"{path.name} ".encode() + hashlib.sha256(path.read_bytes()).digest())
        return cls(files.cache("benchmarks", "search", state.hexdigest()[:16]), anew)

    def read(self, name: str, turns: int) -> Played | None:
        """The results of ``name`` in so many turns; None if it did not finish the last one."""
        path = self._path(name)
        if self.anew or not path.exists():
            return None
        played = [_played(row) for row in json.loads(path.read_text())]
        return played if len(played) == turns else None

    def write(self, name: str, played: Played) -> None:
        """Store the results, completely or not at all."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps([_row(*turn) for turn in played]))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name.replace(':', '-')}.json"


def _row(figures: Figures, false: bool) -> list[object]:
    named, own_s, ended = figures
    return [[(runs, s, dict(setting)) for runs, s, setting in named], own_s, ended, false]


def _played(row: list) -> tuple[Figures, bool]:  # type: ignore[type-arg]
    named, own_s, ended, false = row
    return ([(runs, s, Setting(values)) for runs, s, values in named], own_s, ended), false
