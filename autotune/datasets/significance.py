"""Significance: finds settings of a cell that are faster or slower than the default beyond chance.

There are two tests, because runs are noisy in two ways. If the noise is about normal, Student's t
on the log ratios of each setting has more power, and names the setting. If one launch in five is
three times slower (occasional polling; two ranks on one core by chance), the pooled variance hides
all differences, and ranks of three runs show nothing. For this case all runs that share one or two
levels are compared with the default's by ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.space import DEFAULT, Setting


@dataclass(frozen=True)
class RecordedRun:
    """One run: T / T_default, and the state as strategies know it (ok, censored, failed).

    The ratio of a censored run is a lower bound, that of a failed run infinite.
    """

    ratio: float
    state: str


def significant(
    draws: Mapping[Setting, Sequence[RecordedRun]],
    blocks: Mapping[Setting, Sequence[int]],
    noise: float,
    sign: int,
    alpha: float,
) -> dict[Setting, float]:
    """Mean log ratio of the settings that are slower (``sign`` 1) or faster (-1) than the default.

    Each test is one-sided at level ``alpha``.  The scatter is that of repeated runs, pooled, and at
    least ``noise`` (of one log ratio).  ``blocks`` are the blocks of each run: the default's level
    of a block has an error that all runs of the block share.  Settings with a failed or stopped run
    are not judged.
    """
    from scipy import stats

    groups = {
        setting: np.log([draw.ratio for draw in points])
        for setting, points in draws.items()
        if len(points) > 1 and all(draw.state == "ok" for draw in points)
    }
    freedom = sum(len(logs) - 1 for logs in groups.values())
    if not freedom:
        return {}
    variance = sum(float(np.var(logs)) * len(logs) for logs in groups.values()) / freedom
    bar = float(stats.t.ppf(1 - alpha, freedom)) * math.sqrt(max(variance, noise**2))
    default_blocks = blocks.get(DEFAULT, [])
    logs_by_setting = {}
    for setting, logs in groups.items():
        mine = set(blocks.get(setting, []))
        error = math.sqrt(1 / len(logs) + _level_error(default_blocks, mine, len(draws[DEFAULT])))
        mean = float(np.mean(logs))
        if setting != DEFAULT and sign * mean > bar * error:
            logs_by_setting[setting] = mean
    return logs_by_setting


def faster_groups(draws: Mapping[Setting, Sequence[RecordedRun]], alpha: float) -> list[Setting]:
    """The levels, alone or in pairs, with settings that are faster than the default.

    Each is returned as a setting of one or two parameters, the smallest p value first. All runs of
    the settings with a level are compared with the default's runs by ranks (Mann and Whitney,
    one-sided, ``alpha`` for all groups together). A failed or stopped run counts as the slowest.
    """
    from scipy import stats

    default = [_rank(draw) for draw in draws[DEFAULT]]
    groups: dict[Setting, list[float]] = {}
    for setting, points in draws.items():
        values = [_rank(draw) for draw in points]
        for count in (1, 2):
            for levels in itertools.combinations(setting.items(), count):
                groups.setdefault(Setting(dict(levels)), []).extend(values)
    results = []
    for group, values in groups.items():
        test = stats.mannwhitneyu(values, default, alternative="less", method="asymptotic")
        if float(test.pvalue) < alpha / len(groups):
            results.append((float(test.pvalue), group))
    return [group for _, group in sorted(results, key=lambda item: (item[0], item[1].key))]


def _rank(draw: RecordedRun) -> float:
    return draw.ratio if draw.state == "ok" else math.inf


def _level_error(default_blocks: Sequence[int], mine: set[int], runs: int) -> float:
    """Variance of the default's median level over the blocks ``mine``, in units of one run's."""
    if not mine:
        return 0.5 * math.pi / max(runs, 1)
    # The variance of the median of n normal values is pi/2 times that of their mean.
    errors = [0.5 * math.pi / max(default_blocks.count(block), 1) for block in mine]
    return sum(errors) / len(errors) ** 2
