"""Replay: a measured grid provides runs of settings by drawing from its raw runs.

Only complete grids are replayed: nothing is interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np

from autotune.datasets.dataset import Dataset
from autotune.datasets.significance import RecordedRun, faster_groups, significant
from autotune.errors import UsageError
from autotune.space import DEFAULT, InactiveParameters, Setting, Space
from autotune.stats import noise_of

RUNS = 3
"""Runs of a complete setting; two runs that are not ok also suffice."""
BAD_RUNS = 2
ALPHA = 0.05
TOP = 10
SPLITS = 40
"""Number of random halves; the best setting is chosen on one half and measured on the other."""

_STATES = {"ok": "ok", "censored": "censored"}


@dataclass(frozen=True)
class ReplayOptimum:
    """OPUB: the setting, and its held-out ratio T / T_default."""

    setting: Setting
    ratio: float

    @property
    def gain(self) -> float:
        return 1 / self.ratio - 1


class Landscape:
    """One cell of a dataset as a machine that answers at once.

    ``settings`` are the distinct settings in the order of the dataset, the default first.
    ``complete``: True for each with enough runs. Raises UsageError if the dataset is not a grid.
    """

    def __init__(self, dataset: Dataset, cell: str, min_runs: int = RUNS) -> None:
        if dataset.kind != "grid":
            raise UsageError(
                f"dataset {dataset.name} is of kind {dataset.kind}; expected a complete grid: "
                "only there every setting has been measured, as a replay needs",
                code="dataset.not_a_grid",
            )
        cell_entry = dataset.cell(cell)
        runs = dataset.runs(cell_entry)
        settings = dataset.settings(cell_entry)
        first = sorted(set(dataset.representatives(cell_entry)))
        space = dataset.space(cell_entry)
        idle = cell_entry.idle(space)
        forms = {i: idle.strip(settings[i]) for i in first}
        draws = {forms[i]: [] for i in first}  # type: dict[Setting, list[RecordedRun]]
        blocks = {forms[i]: [] for i in first}  # type: dict[Setting, list[int]]
        columns = zip(runs["setting"], runs["ratio"], runs["state"], runs["block"], strict=True)
        for index, ratio, state, block in columns:
            if int(index) in forms and not math.isnan(ratio):
                setting = forms[int(index)]
                draws[setting].append(RecordedRun(float(ratio), _STATES.get(str(state), "failed")))
                blocks[setting].append(int(block))
        self._set(f"{dataset.name}/{cell_entry.key}", space, idle, draws)
        self._blocks = blocks
        self.complete = all(_enough(points, min_runs) for points in draws.values())

    def _set(
        self,
        name: str,
        space: Space,
        idle: InactiveParameters,
        draws: dict[Setting, list[RecordedRun]],
    ) -> None:
        self.name = name
        self.space = space
        self._idle = idle
        self.settings = list(draws)
        self._draws = draws
        self._by_key = {setting.key: points for setting, points in draws.items()}
        # The same settings are requested many times, so each is looked up only once.
        self._points_by_key: dict[str, list[RecordedRun]] = dict(self._by_key)

    def _points(self, setting: Setting) -> list[RecordedRun]:
        points = self._points_by_key.get(setting.key)
        if points is None:
            points = self._by_key.get(self.effective(setting).key)
            if not points:
                raise UsageError(
                    f"{self.name} has no runs of the setting {setting.key}: it is not on the grid",
                    code="dataset.setting_unknown",
                )
            self._points_by_key[setting.key] = points
        return points

    def effective(self, setting: Setting) -> Setting:
        """The canonical form of all settings with the same effect in this cell."""
        return self._idle.strip(setting)

    def draw(self, setting: Setting, rng: np.random.Generator) -> RecordedRun:
        """One of the runs of the setting, all equally likely; raises UsageError off the grid."""
        points = self._points(setting)
        return points[int(rng.random() * len(points))]

    def draws(self, setting: Setting) -> list[RecordedRun]:
        """All runs of the setting in the order of measurement; raises UsageError off the grid."""
        return list(self._points(setting))

    def median(self, setting: Setting) -> float:
        """The median ratio over all runs of the setting; raises UsageError off the grid."""
        return median(draw.ratio for draw in self._points(setting))

    def halves(self, seed: int) -> tuple[Landscape, dict[Setting, float]]:
        """A landscape of one random half of the runs, and the median ratios of the other half.

        The search gets the larger part of an odd number of runs. A strategy that searches on one
        half and is judged on the other cannot gain by luck.
        """
        rng = np.random.default_rng([seed, 7])
        search: dict[Setting, list[RecordedRun]] = {}
        held_out: dict[Setting, float] = {}
        for setting, points in self._draws.items():
            order = rng.permutation(len(points))
            cut = (len(points) + 1) // 2
            search[setting] = [points[i] for i in sorted(order[:cut])]
            # A single run of a setting is used on both sides.
            held_out[setting] = median(
                points[i].ratio for i in (order[cut:] if cut < len(order) else order)
            )
        half = object.__new__(Landscape)
        half._set(self.name, self.space, self._idle, search)
        half._blocks = {}
        half.complete = self.complete
        return half, held_out

    def flatten(self) -> Landscape:
        """A landscape in which no setting is faster than the default, with the noise of this one.

        The few runs of each setting always differ. If they are drawn many times, the luckiest
        setting has a gain that every proof finds. So all settings not slower than the default share
        their runs. Slower and failing settings have their own runs.
        """
        slower = self._beyond(1, ALPHA)
        level = [
            setting
            for setting, points in self._draws.items()
            if setting not in slower and all(draw.state == "ok" for draw in points)
        ]
        pool = [draw for setting in level for draw in self._draws[setting]]
        draws = {s: pool if s in set(level) else points for s, points in self._draws.items()}
        flat = object.__new__(Landscape)
        flat._set(self.name, self.space, self._idle, draws)
        flat._blocks = {}
        flat.complete = self.complete
        return flat

    @cached_property
    def noise(self) -> float:
        """Robust standard deviation of the log ratio of one run, from the default's runs."""
        return noise_of([draw.ratio for draw in self._draws[DEFAULT] if draw.state == "ok"])

    @cached_property
    def best(self) -> ReplayOptimum:
        """OPUB: chosen among the settings on one half of the runs, measured on the other half.

        This is repeated over random halves. The ten settings chosen most often are the top, and the
        best of them by all runs is named. Its ratio comes from the mean log ratio of one half's
        choices on the other half, so that luck does not count as gain.
        """
        votes: dict[Setting, int] = {}
        logs = []
        for seed in range(SPLITS):
            half, held_out = self.halves(seed)
            pick = min(half.settings, key=half.median)
            votes[pick] = votes.get(pick, 0) + 1
            logs.append(math.log(held_out[pick]) if math.isfinite(held_out[pick]) else math.inf)
        top = sorted(votes, key=lambda s: (-votes[s], s.key))[:TOP]
        optimum = min(top, key=lambda s: (self.median(s), s.key))
        return ReplayOptimum(optimum, math.exp(median(logs)))

    @cached_property
    def null(self) -> bool:
        """True if nothing beats the default by more than the noise (one-sided, 5 % for all tests
        together).

        Half of the 5 % is for the tests of single settings, half for the tests of all settings with
        a common level.
        """
        return not self.winners and not faster_groups(self._draws, ALPHA / 2)

    @cached_property
    def winners(self) -> list[Setting]:
        """The settings that each beat the default by themselves, best first (Student's t, with
        Bonferroni's correction for their number)."""
        logs = self._beyond(-1, ALPHA / 2 / max(len(self._draws) - 1, 1))
        return sorted(logs, key=lambda setting: (logs[setting], setting.key))

    def _beyond(self, sign: int, alpha: float) -> dict[Setting, float]:
        return significant(self._draws, self._blocks, self.noise, sign, alpha)


def _enough(points: list[RecordedRun], runs: int) -> bool:
    good = sum(draw.state == "ok" for draw in points)
    return len(points) >= runs or (len(points) - good) >= BAD_RUNS
