"""Runs as ratios: how fast the machine was in each block, and how long the default takes there."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_ROUNDS = 20
_NEAR = 1e-6


def ratios(runs: pd.DataFrame) -> pd.Series[float]:
    """The ratio of every run to the default's level in its cell and block; see Dataset.runs.

    A block has few runs of the default, and where one launch in five is three times as slow their
    median is slow now and then, and all ratios of the block are a third of what they should be.
    The other settings were run in several blocks, too, and tell together how the blocks differ:
    log time = setting + block, fitted by medians (Tukey's median polish).  The default's level
    is the median of all its runs of the cell, brought to the block.  A block without a valid run of
    the default has no ratios: nothing says that the machine was as usual there.
    """
    level = pd.Series(np.nan, index=runs.index, dtype=float)
    for _, cell in runs.groupby("cell", sort=False):
        level[cell.index] = cell["block"].map(_levels(cell))
    found = pd.Series(np.inf, index=runs.index, dtype=float)
    found = found.mask(runs["state"] == "ok", runs["value_s"] / level)
    return found.mask(runs["state"] == "censored", runs["limit_s"] / level)


def _levels(cell: pd.DataFrame) -> dict[int, float]:
    """Seconds that the default takes in each block of one cell."""
    good = cell[cell["state"] == "ok"]
    logs = pd.Series(np.log(good["value_s"].astype(float)), index=good.index)
    default = good["setting"] == 0
    blocks = sorted(int(block) for block in good.loc[default, "block"].unique())
    if not blocks:
        return {}
    table = (
        logs.groupby([good["setting"], good["block"]]).median().unstack().reindex(columns=blocks)
    )
    seen = table[table.notna().sum(axis=1) > 1].to_numpy()
    if len(seen) <= len(blocks):  # Little but the default itself tells how blocks differ.
        medians = good[default].groupby("block")["value_s"].median()
        return {block: float(medians[block]) for block in blocks}
    speed = dict(zip(blocks, _polish(seen), strict=True))
    middle = float((logs[default] - good.loc[default, "block"].map(speed)).median())
    return {block: float(np.exp(middle + speed[block])) for block in blocks}


def _polish(table: NDArray[np.float64]) -> list[float]:
    """Effects of the columns, their median 0.  A column that shares no row with others gets 0."""
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
