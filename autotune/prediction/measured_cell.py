"""The runs of one cell, setting by setting, as a prediction is trained on and judged by them."""

from __future__ import annotations

import math
import statistics
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from autotune.space import Setting

Floats = NDArray[np.float64]

EXTREME = math.log(1.5)
"""Limit of log ratios: everything slower, including failures, counts as this, and everything faster
as its negative. So one program that becomes five times faster does not decide for all others."""
LEAST_NOISE = 0.01
"""Smallest scatter of a default (as a log ratio), because a few runs can agree by chance."""


class MeasuredCell:
    """What the runs of a cell say; a base of data classes that have these fields.

    ``key``, ``app``: the cell and its program. ``settings[0]`` is the default. ``runs`` has one
    tuple for each setting: T / T_default of its runs, infinite for a run that failed. ``opub`` is
    T_OPUB / T_default; it is 1 if the cell is ``null``, which means that nothing beats the default
    by more than the noise.
    """

    key: str
    app: str
    settings: tuple[Setting, ...]
    runs: tuple[tuple[float, ...], ...]
    opub: float
    null: bool
    extreme: ClassVar[float] = EXTREME
    """The limit of the log ratios."""

    @cached_property
    def measured_ratios(self) -> Floats:
        """Median T / T_default of each setting as measured, also on a null cell; shape (settings,).

        1 for the default, infinite for a setting that failed.
        """
        medians = np.array([statistics.median(r) if r else math.inf for r in self.runs])
        medians[0] = 1.0
        return medians

    @cached_property
    def ratios(self) -> Floats:
        """Median T / T_default of each setting, shape (settings,); 1 for the default.

        On a null cell none is below 1: a faster figure there is only the luckiest of many runs.
        """
        return np.maximum(self.measured_ratios, 1.0) if self.null else self.measured_ratios

    @property
    def fastest(self) -> int:
        """Index of the fastest measured setting, also on a null cell (Pellegrini 4.6: OPUB)."""
        return int(self.measured_ratios.argmin())

    @property
    def fastest_log(self) -> float:
        """Log ratio of the fastest measured setting, limited to ``extreme``."""
        return max(math.log(float(self.measured_ratios.min())), -self.extreme)

    @cached_property
    def logs(self) -> Floats:
        """Log of the ratios, limited to ``extreme`` in both directions; shape (settings,)."""
        with np.errstate(divide="ignore"):
            return np.clip(np.log(self.ratios), -self.extreme, self.extreme)

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the log ratio of one run, from the default's runs (robust)."""
        finite = [math.log(r) for r in self.runs[0] if 0 < r < math.inf]
        if len(finite) < 3:
            return 0.03
        middle = statistics.median(finite)
        return max(LEAST_NOISE, 1.4826 * statistics.median(abs(x - middle) for x in finite))

    def beyond_noise(self, index: int) -> float:
        """The log ratio above which the setting is slower than the default by more than the
        noise."""
        runs = max(1, len(self.runs[index])), max(1, len(self.runs[0]))
        return max(math.log(1.02), 2 * self.noise * math.sqrt(1 / runs[0] + 1 / runs[1]))
