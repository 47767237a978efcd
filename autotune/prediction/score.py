"""Share and performance ratio of a named setting on a recorded program (docs/design.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.prediction.examples import Example, Floats


@dataclass(frozen=True)
class Verdict:
    """One setting on one cell.  ``performance`` is T_OPUB / T, on a null cell T_default / T;
    ``share`` gain / gain(OPUB), None on a null cell; ``slower``: than the default, beyond noise;
    ``false``: something else than the default was named on a null cell."""

    cell: str
    app: str
    setting: str
    ratio: float
    performance: float
    share: float | None
    slower: bool
    false: bool

    def to_json(self) -> dict[str, Any]:
        finite = self.ratio if np.isfinite(self.ratio) else None
        return {**self.__dict__, "ratio": finite}


def judge(example: Example, index: int) -> Verdict:
    """What naming the setting of that index for this cell is worth."""
    ratio = float(example.ratios[index])
    return Verdict(
        cell=example.key,
        app=example.app,
        setting=example.settings[index].key,
        ratio=ratio,
        performance=example.opub / ratio,
        share=_share(example, 1 / ratio - 1),
        slower=index > 0 and bool(example.logs[index] > example.beyond_noise(index)),
        false=example.null and index > 0,
    )


def judge_random(example: Example) -> Verdict:
    """What a setting drawn at random is worth on average; it counts as slower where most are."""
    speeds: Floats = 1 / example.ratios[1:]
    slower = [judge(example, i).slower for i in range(1, len(example.settings))]
    mean = float(speeds.mean())
    return Verdict(
        cell=example.key,
        app=example.app,
        setting="any",
        ratio=1 / mean if mean > 0 else float("inf"),
        performance=example.opub * mean,
        share=_share(example, mean - 1),
        slower=2 * sum(slower) > len(slower),
        false=example.null,
    )


@dataclass(frozen=True)
class Row:
    """A method over all cells: means of performance and (on cells with something to gain) share."""

    method: str
    verdicts: tuple[Verdict, ...]

    @property
    def performance(self) -> float:
        return float(np.mean([v.performance for v in self.verdicts]))

    @property
    def worst(self) -> float:
        return min(v.performance for v in self.verdicts)

    @property
    def share(self) -> float | None:
        shares = [v.share for v in self.verdicts if v.share is not None]
        return float(np.mean(shares)) if shares else None

    @property
    def slower(self) -> int:
        return sum(v.slower for v in self.verdicts)

    @property
    def false(self) -> int:
        return sum(v.false for v in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "performance_ratio": self.performance,
            "worst_performance_ratio": self.worst,
            "share": self.share,
            "slower_than_default": self.slower,
            "named_on_null_cells": self.false,
            "cells": [v.to_json() for v in self.verdicts],
        }


def row(method: str, verdicts: Sequence[Verdict]) -> Row:
    return Row(method, tuple(verdicts))


def _share(example: Example, gain: float) -> float | None:
    return None if example.null else gain / (1 / example.opub - 1)
