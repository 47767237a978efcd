"""What contestants did is kept: a benchmark that was interrupted goes on with those that are left.

A file per contestant below a folder whose name stands for everything that the figures follow from:
the code of the tuner and of this benchmark, the recordings, the rules of the contest.
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
"""What decides in a search, and what its landscapes are made of."""

Figures = tuple[list[tuple[int, float, Setting]], list[float], int | None]
"""What a course holds besides its landscape: what was named, own seconds, where it stopped."""
Played = list[tuple[Figures, bool]]
"""Of each turn: the figures, and whether the study of this turn named falsely."""


@dataclass(frozen=True)
class Checkpoint:
    """What was played before; with ``anew`` it is not looked at, only replaced."""

    folder: Path
    anew: bool = False

    @classmethod
    def of(cls, recordings: Iterable[Path], rules: object, anew: bool = False) -> Checkpoint:
        """Where the contest with this code, these recordings and ``rules`` is kept."""
        state = hashlib.sha256(json.dumps(rules, sort_keys=True).encode())
        code = [path for place in CODE for path in (ROOT / place).rglob("*.py")]
        data = [path for folder in recordings for path in folder.rglob("*") if path.is_file()]
        for path in [*sorted(code), *sorted(data)]:
            state.update(f"{path.name} ".encode() + hashlib.sha256(path.read_bytes()).digest())
        return cls(files.cache("benchmarks", "search", state.hexdigest()[:16]), anew)

    def read(self, name: str, turns: int) -> Played | None:
        """What ``name`` did in so many turns; None where it did not get to the last."""
        path = self._path(name)
        if self.anew or not path.exists():
            return None
        played = [_played(row) for row in json.loads(path.read_text())]
        return played if len(played) == turns else None

    def write(self, name: str, played: Played) -> None:
        """Keep it, whole or not at all."""
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
