"""A dataset as it is read: settings, raw runs, and runs as ratios to their block's default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from autotune.datasets.card import Card, Cell, Kind, read_card
from autotune.datasets.frozen import thawed
from autotune.datasets.levels import ratios
from autotune.datasets.place import folder_of
from autotune.datasets.shards import COLUMNS, SHARDS, read_shard
from autotune.errors import UsageError
from autotune.space import DEFAULT, IdleParameters, Setting, Space
from autotune.space.trust import check_name, check_space
from runner.bounded import MIB, read_text

SETTINGS = "settings"
ALL = "all"
SPACES = "spaces"
SPACE = "space.toml"
FEATURES = "features"
"""Folder with one features file a cell, named by its key."""
SETTINGS_BYTES = 64 * MIB
"""Largest list of settings."""


class Dataset:
    """One folder of measured runs.  Made by :func:`load`; everything is read when asked for."""

    def __init__(self, folder: Path, card: Card) -> None:
        self.folder = folder
        self.card = card
        self._spaces: dict[str, Space] = {}
        self._settings: dict[str, list[Setting]] = {}

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def kind(self) -> Kind:
        return self.card.kind

    @property
    def cells(self) -> list[Cell]:
        return list(self.card.cells)

    def cell(self, cell: str | Cell) -> Cell:
        """The cell of that key; raises UsageError naming those there are."""
        key = cell if isinstance(cell, str) else cell.key
        for known in self.card.cells:
            if known.key == key:
                return known
        keys = ", ".join(c.key for c in self.card.cells)
        raise UsageError(f"dataset {self.name} has no cell {key!r}; its cells are {keys}")

    def space(self, cell: str | Cell) -> Space:
        """What may vary in a cell: its own file, else the dataset's."""
        found = self.cell(cell)
        if found.key not in self._spaces:
            own = self.folder / SPACES / f"{found.key}.toml"
            path = own if own.is_file() else self.folder / SPACE
            facts = {"ranks": found.ranks, **found.facts}
            space = thawed(path, facts, f"{self.name}/{found.key}")
            check_space(space, str(path))
            self._spaces[found.key] = space
        return self._spaces[found.key]

    def settings(self, cell: str | Cell) -> list[Setting]:
        """The settings in the order of their index; the first is the default."""
        found = self.cell(cell)
        if found.key not in self._settings:
            own = self.folder / SETTINGS / f"{found.key}.json"
            path = own if own.is_file() else self.folder / SETTINGS / f"{ALL}.json"
            settings = _read_settings(path)
            for name in sorted({name for setting in settings for name in setting}):
                check_name(name, str(path))
            self._settings[found.key] = settings
        return self._settings[found.key]

    def representatives(self, cell: str | Cell) -> list[int]:
        """For each index the first index that means the same in this cell (often its own)."""
        found = self.cell(cell)
        return representatives(self.settings(found), found.idle(self.space(found)))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        frames = [self._cell_runs(cell) for cell in self.card.cells]
        filled = [frame for frame in frames if len(frame)]
        return pd.concat(filled, ignore_index=True) if filled else frames[0]

    def _cell_runs(self, cell: Cell) -> pd.DataFrame:
        paths = sorted((self.folder / SHARDS).glob(f"{cell.key}.[0-9]*.parquet"))
        frames = [read_shard(path) for path in paths]
        if not frames:
            return pd.DataFrame(columns=[*COLUMNS, "ratio"])
        runs = pd.concat(frames, ignore_index=True)
        self._check(cell, runs)
        runs["ratio"] = ratios(runs)
        return runs

    def _check(self, cell: Cell, runs: pd.DataFrame) -> None:
        count = len(self.settings(cell))
        if len(runs) and not runs["setting"].between(0, count - 1).all():
            raise UsageError(
                f"{self.folder}: a shard of cell {cell.key} refers to setting "
                f"{int(runs['setting'].max())}, but the list of settings has {count}: the "
                "files do not belong together"
            )
        others = sorted(set(runs["cell"]) - {cell.key})
        if others:
            raise UsageError(
                f"{self.folder}: a shard of cell {cell.key} has runs of cell {others[0]!r}: the "
                "files do not belong together"
            )
        fingerprints = set(runs["machine"]) - {self.card.machine.fingerprint}
        if fingerprints:
            raise UsageError(
                f"{self.folder}: cell {cell.key} has runs of machine {min(fingerprints)}, but "
                f"the card says {self.card.machine.fingerprint}; runs of two machines need two "
                "datasets"
            )

    def runs(self, cell: str | Cell | None = None) -> pd.DataFrame:
        """Raw runs, one a row, with ``ratio`` = value_s / the default's level in their block.

        Of a censored run it is a lower bound (its limit over that median), of one that failed,
        was altered or wrong it is infinite.
        """
        if cell is None:
            return self._runs.copy()
        key = self.cell(cell).key
        return self._runs[self._runs["cell"] == key].reset_index(drop=True)

    def matrix(self, cell: str | Cell) -> pd.DataFrame:
        """One row a setting: index, n (runs), ratio_median and state ("" where not measured).

        The state is "ok" where most runs were, else the most frequent other one.  Settings that
        mean the same have the same figures.
        """
        runs = self.runs(cell)
        rows = []
        grouped = {int(str(index)): group for index, group in runs.groupby("setting")}
        for index, same in enumerate(self.representatives(cell)):
            group = grouped.get(same)
            if group is None:
                rows.append((index, 0, np.nan, ""))
                continue
            # Ties go to the cautious side: "ok" needs the majority.
            states = group["state"].value_counts()
            good = int(states.get("ok", 0)) * 2 > len(group)
            state = "ok" if good else str(states.drop("ok", errors="ignore").idxmax())
            rows.append((index, len(group), float(group["ratio"].median()), state))
        return pd.DataFrame(rows, columns=["index", "n", "ratio_median", "state"])


def representatives(settings: Sequence[Setting], idle: IdleParameters) -> list[int]:
    """For each setting the index of the first that does the same, given what does nothing."""
    first: dict[Setting, int] = {}
    return [first.setdefault(idle.strip(setting), i) for i, setting in enumerate(settings)]


def load(place: str | Path) -> Dataset:
    """The dataset of a folder, or of that name (:mod:`autotune.datasets.place`).

    Its shards are read when needed.

    Raises UsageError where there is none, or it was written by a newer version.
    """
    folder = folder_of(place)
    return Dataset(folder, read_card(folder))


def _read_settings(path: Path) -> list[Setting]:
    try:
        data = json.loads(read_text(path, SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"cannot read the settings {path}: {reason}") from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UsageError(f"{path}: expected a list of settings, each a table of names and values")
    settings = [Setting(item) for item in data]
    if not settings or settings[0] != DEFAULT:
        raise UsageError(f"{path}: the first setting must be {{}}, the default")
    return settings


def settings_text(settings: Sequence[Setting]) -> str:
    """A list of settings as JSON, one a line."""
    lines = [json.dumps(setting.to_json()) for setting in settings]
    return "[\n" + ",\n".join(lines) + "\n]\n"
