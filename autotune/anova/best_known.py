"""OPUB: the best known setting of a cell and its gain, without the luck of the fastest run.

The setting is chosen on one half of the runs and its gain is measured on the other half
(docs/explanation/design.md, "Names"). If settings were run only once, the expected luck of the best
of them is subtracted instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autotune.space import DEFAULT
from autotune.stats.uncertainty import mad_spread

if TYPE_CHECKING:
    import pandas as pd


SIGMAS = 2.33
"""A cell has a possible gain if OPUB beats the default by this many standard errors (1 %)."""


@dataclass(frozen=True)
class Opub:
    """``gain`` = T_default / T - 1 of the setting ``key``; ``noise``: standard deviation of the log
    time of one run.  ``null``: nothing beats the default by more than the noise; ``gain`` is then
    0."""

    key: str
    gain: float
    noise: float
    null: bool


def opub_of(runs: pd.DataFrame) -> Opub:
    """OPUB of one cell. ``runs`` has the columns key, ratio and ok in chronological order, and
    contains runs of the default."""
    noise = run_noise(runs)
    whole = runs[runs["ok"] & np.isfinite(runs["ratio"]) & (runs["key"] != DEFAULT.key)]
    whole = whole.assign(log=np.log(whole["ratio"].to_numpy(dtype=float)))
    defaults = max(int((runs["key"] == DEFAULT.key).sum()), 1)
    counts = whole.groupby("key")["log"].transform("size")
    repeats = whole[counts >= 2]
    if len(repeats):
        key, logs, error = _halves(repeats, noise, defaults)
    elif len(whole):
        key, logs, error = _single(whole, noise, defaults)
    else:
        return Opub(DEFAULT.key, 0.0, noise, True)
    if logs <= 0 or logs < SIGMAS * error:
        return Opub(key, 0.0, noise, True)
    return Opub(key, math.expm1(logs), noise, False)


def run_noise(runs: pd.DataFrame) -> float:
    """Standard deviation of the log of one valid run, from repeated runs of the same setting."""
    import pandas as pd

    whole = runs[runs["ok"] & np.isfinite(runs["ratio"])]
    logs = np.log(whole["ratio"].to_numpy(dtype=float))
    groups = pd.Series(logs, index=whole["key"].to_numpy()).groupby(level=0)
    sizes = groups.transform("size").to_numpy()
    is_repeat = sizes >= 2
    deviations = (logs - groups.transform("median").to_numpy())[is_repeat]
    if not deviations.size:
        return 0.0
    # Deviations from the median of n runs are too small by this factor.
    shrunk = deviations * np.sqrt(sizes[is_repeat] / (sizes[is_repeat] - 1.0))
    return max(float(mad_spread(shrunk)), float(np.std(shrunk)) / 3)


def _halves(repeats: pd.DataFrame, noise: float, defaults: int) -> tuple[str, float, float]:
    """Key, log gain and its standard error; chosen on the first half of the runs, measured on the
    rest."""
    place = repeats.groupby("key").cumcount()
    half = repeats.groupby("key")["log"].transform("size") // 2
    first = repeats[place < half].groupby("key")["log"].median()
    second_groups = repeats[place >= half].groupby("key")["log"]
    key = str(first.idxmin())
    second_half = second_groups.get_group(key)
    error = noise * math.sqrt(_of_median(len(second_half)) + _of_median(defaults))
    return key, -float(second_half.median()), error


def _single(whole: pd.DataFrame, noise: float, defaults: int) -> tuple[str, float, float]:
    """The same from one run of each setting; the expected luck of the best is subtracted."""
    best = whole.iloc[int(np.argmin(whole["log"].to_numpy()))]
    luck = noise * math.sqrt(2 * math.log(max(len(whole), 2)))
    error = noise * math.sqrt(1 + _of_median(defaults))
    return str(best["key"]), -float(best["log"]) - luck, error


def _of_median(n: int) -> float:
    """Variance of the median of n runs in units of one run's variance."""
    return 1.0 if n == 1 else math.pi / 2 / n
