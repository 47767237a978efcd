"""A dataset: settings, raw runs, and runs as ratios to the default of their block.

:func:`ratios` estimates the machine's speed and the default's time in each block.
:func:`create_dataset` writes a dataset's folder: card, spaces and settings. Shards have their own
module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.datasets.card import CARD, Card, Cell, Kind, read_card
from autotune.datasets.catalog import folder_of
from autotune.datasets.recorded_layout import with_words
from autotune.datasets.recorded_space import recorded_name, recorded_space, space_of_record
from autotune.datasets.shards import COLUMNS, SHARDS, read_shard
from autotune.errors import UsageError
from autotune.space import DEFAULT, InactiveParameters, Setting, Space
from autotune.space.layout import LayoutMap
from autotune.space.outside_names import check_name, check_space
from runner.files import MIB, read_text, write_atomically
from runner.files.json_text import parse_json
from runner.files.paths import is_file

if TYPE_CHECKING:
    import pandas as pd


SETTINGS = "settings"
ALL = "all"
SPACES = "spaces"
SPACE = "space.toml"
FEATURES = "features"
"""Folder with one features file for each cell, named by its key."""
CALIBRATION = "calibration.json"
"""The measurements of "autotune calibrate" on the machine and cluster, if any."""
SETTINGS_BYTES = 64 * MIB
"""Largest list of settings, in bytes."""


class Dataset:
    """One folder of measured runs, made by :func:`load`.  Its files are read on first use."""

    def __init__(self, folder: Path, card: Card) -> None:
        self.folder = folder
        self.card = card
        self._spaces: dict[str, Space] = {}
        self._settings: dict[str, list[Setting]] = {}
        self._layouts: dict[str, LayoutMap] = {}

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def kind(self) -> Kind:
        return self.card.kind

    @property
    def cells(self) -> list[Cell]:
        return list(self.card.cells)

    @property
    def measured_cells(self) -> list[Cell]:
        """The cells with runs; a campaign may not have come to the others yet."""
        measured = set(self._runs["cell"])
        return [cell for cell in self.card.cells if cell.key in measured]

    def cell(self, cell: str | Cell) -> Cell:
        """The cell with that key; raises UsageError with the keys that exist."""
        key = cell if isinstance(cell, str) else cell.key
        for candidate in self.card.cells:
            if candidate.key == key:
                return candidate
        keys = ", ".join(c.key for c in self.card.cells)
        raise UsageError(
            f"dataset {self.name} has no cell {key!r}; its cells are {keys}",
            code="dataset.cell_unknown",
        )

    def space(self, cell: str | Cell) -> Space:
        """The recorded space of a cell: its own file, else that of the dataset."""
        cell_entry = self.cell(cell)
        if cell_entry.key not in self._spaces:
            path = self._space_file(cell_entry)
            facts = {"ranks": cell_entry.ranks, **cell_entry.facts}
            space = space_of_record(path, facts, f"{self.name}/{cell_entry.key}")
            check_space(space, str(path))
            self._spaces[cell_entry.key] = space
        return self._spaces[cell_entry.key]

    def _space_file(self, cell: Cell) -> Path:
        own = self.folder / SPACES / f"{cell.key}.toml"
        return own if is_file(own) else self.folder / SPACE

    def space_name(self, cell: str | Cell) -> str:
        """The name of the space with which a cell was measured; "" if its file does not say it."""
        return recorded_name(self._space_file(self.cell(cell)))

    def layouts(self, cell: str | Cell) -> LayoutMap:
        """The layouts of a cell's settings; without words if its space has none."""
        cell_entry = self.cell(cell)
        if cell_entry.key not in self._layouts:
            space = with_words(self.space(cell_entry), cell_entry, self.space_name(cell_entry))
            self._layouts[cell_entry.key] = LayoutMap(space)
        return self._layouts[cell_entry.key]

    def settings(self, cell: str | Cell) -> list[Setting]:
        """The settings of a cell in the order of their index; the first is the default."""
        cell_entry = self.cell(cell)
        if cell_entry.key not in self._settings:
            own = self.folder / SETTINGS / f"{cell_entry.key}.json"
            path = own if is_file(own) else self.folder / SETTINGS / f"{ALL}.json"
            settings = _read_settings(path)
            for name in sorted({name for setting in settings for name in setting}):
                check_name(name, str(path))
            self._settings[cell_entry.key] = settings
        return self._settings[cell_entry.key]

    def representatives(self, cell: str | Cell) -> list[int]:
        """For each setting the first index with the same effect in this cell (often its own)."""
        cell_entry = self.cell(cell)
        return representatives(self.settings(cell_entry), cell_entry.idle(self.space(cell_entry)))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        import pandas as pd

        frames = [self._cell_runs(cell) for cell in self.card.cells]
        nonempty = [frame for frame in frames if len(frame)]
        return pd.concat(nonempty, ignore_index=True) if nonempty else frames[0]

    def _cell_runs(self, cell: Cell) -> pd.DataFrame:
        import pandas as pd

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
                "files do not belong together",
                code="dataset.settings",
            )
        others = sorted(set(runs["cell"]) - {cell.key})
        if others:
            raise UsageError(
                f"{self.folder}: a shard of cell {cell.key} has runs of cell {others[0]!r}: the "
                "files do not belong together",
                code="dataset.mixed",
            )
        fingerprints = set(runs["machine"]) - {self.card.machine.fingerprint}
        if fingerprints:
            raise UsageError(
                f"{self.folder}: cell {cell.key} has runs of machine {min(fingerprints)}, but "
                f"the card says {self.card.machine.fingerprint}; runs of two machines need two "
                "datasets",
                code="dataset.mixed",
            )

    def runs(self, cell: str | Cell | None = None) -> pd.DataFrame:
        """Raw runs, one in each row, with ``ratio`` = value_s / the default's level in their block.

        The ratio of a censored run is a lower bound (its limit over the default's level); that of a
        failed, altered or wrong run is infinite.
        """
        if cell is None:
            return self._runs.copy()
        key = self.cell(cell).key
        return self._runs[self._runs["cell"] == key].reset_index(drop=True)

    def matrix(self, cell: str | Cell) -> pd.DataFrame:
        """One row for each setting: index, n (runs), ratio_median and state ("" if not measured).

        The state is "ok" if most runs were ok, else the most frequent other state.  Settings with
        the same effect have the same figures.
        """
        import pandas as pd

        runs = self.runs(cell)
        rows = []
        groups = {int(str(index)): group for index, group in runs.groupby("setting")}
        for index, same in enumerate(self.representatives(cell)):
            group = groups.get(same)
            if group is None:
                rows.append((index, 0, np.nan, ""))
                continue
            # A tie does not count as "ok": that needs the majority.
            states = group["state"].value_counts()
            good = int(states.get("ok", 0)) * 2 > len(group)
            state = "ok" if good else str(states.drop("ok", errors="ignore").idxmax())
            rows.append((index, len(group), float(group["ratio"].median()), state))
        return pd.DataFrame(rows, columns=["index", "n", "ratio_median", "state"])


def representatives(settings: Sequence[Setting], idle: InactiveParameters) -> list[int]:
    """For each setting the index of the first with the same effect; ``idle``: inactive
    parameters."""
    first: dict[Setting, int] = {}
    return [first.setdefault(idle.strip(setting), i) for i, setting in enumerate(settings)]


def load(place: str | Path) -> Dataset:
    """The dataset in a folder, or with that name (:mod:`autotune.datasets.catalog`).

    Its shards are read when needed.

    Raises UsageError if there is none, or if a newer version wrote it.
    """
    folder = folder_of(place)
    return Dataset(folder, read_card(folder))


def _read_settings(path: Path) -> list[Setting]:
    try:
        data = parse_json(read_text(path, SETTINGS_BYTES))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(
            f"cannot read the settings {path}: {reason}", code="dataset.unreadable"
        ) from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UsageError(
            f"{path}: expected a list of settings, each a table of names and values",
            code="dataset.settings",
        )
    settings = [Setting(item) for item in data]
    if not settings or settings[0] != DEFAULT:
        raise UsageError(
            f"{path}: the first setting must be {{}}, the default", code="dataset.settings"
        )
    return settings


def settings_text(settings: Sequence[Setting]) -> str:
    """A list of settings as JSON, one on each line."""
    lines = [json.dumps(setting.to_json()) for setting in settings]
    return "[\n" + ",\n".join(lines) + "\n]\n"


_ROUNDS = 20
_NEAR = 1e-6


def ratios(runs: pd.DataFrame) -> pd.Series[float]:
    """The ratio of every run to the default's level in its cell and block; see
    :meth:`Dataset.runs`.

    A block has few runs of the default. If one launch in five is three times slower, their median
    is sometimes slow, and all ratios of the block are a third of their true value. The other
    settings were run in several blocks, too, and show the differences of blocks: log time = setting
    + block, fitted by medians (Tukey's median polish). The default's level is the median of all its
    runs of the cell, corrected to the block. A block without a valid run of the default has no
    ratios, because nothing shows how fast the machine was.
    """
    import pandas as pd

    level = pd.Series(np.nan, index=runs.index, dtype=float)
    for _, cell in runs.groupby("cell", sort=False):
        level[cell.index] = cell["block"].map(_levels(cell))
    values = pd.Series(np.inf, index=runs.index, dtype=float)
    values = values.mask(runs["state"] == "ok", runs["value_s"] / level)
    return values.mask(runs["state"] == "censored", runs["limit_s"] / level)


def _levels(cell: pd.DataFrame) -> dict[int, float]:
    """Seconds that the default takes in each block of one cell."""
    import pandas as pd

    good = cell[cell["state"] == "ok"]
    logs = pd.Series(np.log(good["value_s"].astype(float)), index=good.index)
    default = good["setting"] == 0
    blocks = sorted(int(block) for block in good.loc[default, "block"].unique())
    if not blocks:
        return {}
    table = (
        logs.groupby([good["setting"], good["block"]]).median().unstack().reindex(columns=blocks)
    )
    repeats = table[table.notna().sum(axis=1) > 1].to_numpy()
    if len(repeats) <= len(blocks):  # Hardly any setting except the default ran in several blocks.
        medians = good[default].groupby("block")["value_s"].median()
        return {block: float(medians[block]) for block in blocks}
    speed = dict(zip(blocks, _polish(repeats), strict=True))
    middle = float((logs[default] - good.loc[default, "block"].map(speed)).median())
    return {block: float(np.exp(middle + speed[block])) for block in blocks}


def _polish(table: NDArray[np.float64]) -> list[float]:
    """Effects of the columns, with median 0.  A column that shares no row with others gets 0."""
    columns = np.zeros(table.shape[1])
    for _ in range(_ROUNDS):
        rows = np.nanmedian(table - columns, axis=1)
        with np.errstate(all="ignore"):
            left = table - columns - rows[:, None]
        step = np.array([np.nanmedian(c) if np.isfinite(c).any() else 0.0 for c in left.T])
        columns += step
        if float(np.abs(step).max()) < _NEAR:
            break
    return [float(c) for c in columns - np.median(columns)]


def write_dataset_file(path: Path, text: str) -> None:
    """Replace a file atomically; raises UsageError if it cannot be written."""
    try:
        write_atomically(path, text, mode=0o644)
    except OSError as problem:
        raise UsageError(
            f"cannot write {path}: {problem.strerror}", code="dataset.unwritable"
        ) from None


def write_card(folder: Path, card: Card) -> None:
    """Write or replace the card; raises UsageError if it cannot be written."""
    write_dataset_file(folder / CARD, card.text())


def create_dataset(
    folder: Path,
    card: Card,
    spaces: Mapping[str, Space],
    settings: Mapping[str, Sequence[Setting]],
) -> Dataset:
    """A dataset without runs.  ``spaces`` by cell key; ``settings`` by cell key or ``"all"``.

    The card is written last: a folder without a card is not a dataset. Raises ValueError if a list
    of settings does not begin with the default, UsageError if a file cannot be written.
    """
    for key, entries in settings.items():
        if not entries or entries[0] != DEFAULT:
            raise ValueError(f"settings of {key} do not begin with the default")
        write_dataset_file(folder / SETTINGS / f"{key}.json", settings_text(entries))
    for key, space in spaces.items():
        write_dataset_file(folder / SPACES / f"{key}.toml", recorded_space(space))
    write_card(folder, card)
    return load(folder)


__all__ = ["ALL", "create_dataset", "write_card", "write_dataset_file"]
