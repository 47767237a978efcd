"""Workers of one study whose launches are draws from a landscape; all else is real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autotune.measurement.budget import SearchPlan
from autotune.measurement.evaluator import MachineEvaluator, RunPlace
from autotune.measurement.run_history import HistoryEntry, history_of
from autotune.space import Parameter, Setting, Space
from autotune.strategies import create
from autotune.strategies.options import OptionValue
from autotune.study.loop import SearchLoop
from autotune.study.trial_store import StoredTrials
from benchmarks.store_speed import study_key as study_key
from runner.types import LaunchSpec, RunRecord

NOISE = 0.05
LEVELS, PARAMETERS = 4, 8
ENDING = ("auto", "ga")
"""Strategies that end by themselves unless their patience is 0."""
Pairs = dict[tuple[tuple[str, int], tuple[str, int]], float]
SPACE = Space(
    "simulated",
    tuple(Parameter(f"p{i}", tuple(range(1, LEVELS + 1)), target="mca") for i in range(PARAMETERS)),
)


@dataclass(frozen=True)
class Landscape:
    """The true ratio of each setting: factors of single levels, and of pairs of them."""

    levels: dict[tuple[str, int], float]
    pairs: Pairs

    @classmethod
    def known(cls) -> Landscape:
        """Four parameters matter, two of them together; the optimum is 0.723."""
        levels = {("p0", 2): 0.88, ("p1", 3): 0.92, ("p2", 1): 0.96, ("p3", 4): 1.3}
        return cls(levels, {(("p0", 2), ("p4", 4)): 0.93})

    @classmethod
    def drawn(cls, seed: int) -> Landscape:
        """Four to six parameters matter, and some pairs of levels, by a seed."""
        rng = np.random.default_rng([seed, 72])
        names = [f"p{i}" for i in rng.permutation(PARAMETERS)[: rng.integers(4, 7)]]
        levels = {
            (name, level): float(np.exp(rng.normal(0.0, 0.08)))
            for name in names
            for level in range(1, LEVELS + 1)
        }
        chosen = [
            tuple(names[i] for i in rng.permutation(len(names))[:2])
            for _ in range(int(rng.integers(1, 4)))
        ]
        pairs: Pairs = {}
        for first, second in chosen:
            one, other = (int(level) for level in rng.integers(1, LEVELS + 1, 2))
            pairs[(first, one), (second, other)] = float(np.exp(-abs(rng.normal(0.0, 0.08))))
        return cls(levels, pairs)

    def ratio(self, setting: Setting) -> float:
        """T / T_default of a setting, without noise."""
        ratio = 1.0
        for (name, level), factor in self.levels.items():
            ratio *= factor if setting.get(name) == level else 1.0
        for ends, factor in self.pairs.items():
            ratio *= factor if all(setting.get(n) == level for n, level in ends) else 1.0
        return ratio


class CrewEvaluator(MachineEvaluator):
    """Draws instead of launching; the place of each worker has its own speed."""

    landscape: Landscape
    speed: float
    launch: Callable[[float], None]
    rng: np.random.Generator

    def _launch(
        self, spec: LaunchSpec, place: RunPlace, given_up: bool = False, warms_up: bool = False
    ) -> HistoryEntry:
        ratio = self.landscape.ratio(place.setting)
        seconds = self.speed * ratio * float(self.rng.lognormal(0, NOISE))
        self.launch(seconds)
        return self._store_run(
            RunRecord("ok", wall_s=seconds, place=self.history.place or ""), place
        )


class _Target:
    """The part of a target that an evaluator needs; nothing is launched."""

    def spec(self, space: Space, setting: Setting, timeout_s: float | None = None) -> None:
        return None


def worker_loop(
    trials: StoredTrials,
    strategy: str,
    landscape: Landscape,
    number: int,
    most: int,
    shared: bool,
    launch: Callable[[float], None],
    seed: int,
) -> SearchLoop:
    """The search phase of one worker on the study of ``trials``.

    ``launch`` gets the seconds of a launch that was drawn, and returns when it has ended. ``seed``
    is that of the worker's proposals.
    """
    store, study = trials.store, trials.study
    history = history_of(store, study.id, f"node{number}")
    evaluator = CrewEvaluator(None, store, study.id, _Target(), SPACE, history, shared=shared)  # type: ignore[arg-type]
    evaluator.landscape = landscape
    evaluator.speed = 1.0 + number % 7 / 3
    evaluator.launch = launch
    evaluator.rng = np.random.default_rng([seed, number])

    def pull() -> None:
        evaluator.pull()

    trials.shared, trials.most, trials.on_refresh = shared, most, pull
    trials.refresh()
    evaluator.trial_ids = trials.ids
    values: dict[str, OptionValue] = {"patience": 0} if strategy in ENDING else {}
    proposer = create(strategy, SPACE, seed=seed, options=values)
    return SearchLoop(evaluator, trials, proposer, SPACE, SearchPlan(trials=most))
