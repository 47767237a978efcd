"""Stored results of contestants, so that an interrupted benchmark continues with the others.

There is one file per contestant, in a folder per benchmark. The name of the folder is a hash of
what is common to all contestants: the rules, the recordings, and the code of the study, of the
landscapes and of the runner. The name of the file has the digest of the contestant's own code and
of the versions of the packages that it imports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.space import Setting
from benchmarks.search.code_digest import code_digest, contestant_module
from runner import files
from runner.files import write_atomically

_COMMON = tuple(
    f"benchmarks.search.{module}" for module in ("contestants", "landscapes", "predicted")
)
_OWN = "autotune.strategies"
"""The package that is part of the contestants' own code."""

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
        state.update(code_digest(*_COMMON, without=_OWN).encode())
        data = [path for folder in recordings for path in folder.rglob("*") if path.is_file()]
        for path in sorted(data):
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
        own = code_digest(contestant_module(name))
        return self.folder / f"{name.replace(':', '-')}-{own}.json"


def _row(figures: Figures, false: bool) -> list[object]:
    named, own_s, ended = figures
    return [[(runs, s, dict(setting)) for runs, s, setting in named], own_s, ended, false]


def _played(row: list) -> tuple[Figures, bool]:  # type: ignore[type-arg]
    named, own_s, ended, false = row
    return ([(runs, s, Setting(values)) for runs, s, values in named], own_s, ended), false
