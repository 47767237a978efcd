"""``autotune.replay``: searches of a strategy on a recorded grid, without a launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from autotune.api.convergence import convergence_frame
from autotune.api.keywords import speaks_python
from autotune.datasets import Landscape, load
from autotune.datasets.replay import RUNS
from autotune.errors import UsageError
from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT, Setting
from autotune.strategies import OptionValue, Strategy, find, resolve_options
from autotune.study.convergence import ConvergencePoint, best_so_far
from autotune.study.limited import Limited
from autotune.study.loop import SearchLoop
from autotune.study.race import Race, race_evidence, with_favourite
from autotune.study.simulation import MemoryTrialStore, Model, SimulatedEvaluator
from autotune.study.trial_store import Trial

if TYPE_CHECKING:
    import pandas as pd

STOPPED = 100.0
"""Length of a run that was stopped when it was recorded, in runs of the default."""


@dataclass(frozen=True)
class Replay:
    """One replayed search; a run of the default takes one second.

    ``setting`` is what a study would take into its proof after ``runs`` search runs. ``ratio`` is
    its T / T_default on the half of the recorded runs that the search did not see, ``share`` its
    gain over that of the best known setting (NaN in a cell where nothing beats the default).
    """

    dataset: str
    cell: str
    strategy: str
    seed: int
    setting: Setting
    ratio: float
    share: float
    runs: int
    machine_s: float
    _points: list[ConvergencePoint] = field(repr=False)
    _trials: list[Trial] = field(repr=False)

    def convergence(self) -> pd.DataFrame:
        """The best setting so far, as :meth:`autotune.Study.convergence`."""
        return convergence_frame(self._points)

    def trials(self) -> pd.DataFrame:
        """One row for each trial, as :meth:`autotune.Study.trials`."""
        import pandas as pd

        rows = [(t.number, t.setting.key, t.state, t.estimate) for t in self._trials]
        return pd.DataFrame(rows, columns=["trial", "setting", "state", "estimate"])


@speaks_python
def replay(
    strategy: str | type[Strategy],
    dataset: str | Path,
    cell: str | None = None,
    *,
    runs: int = 45,
    seeds: int | Sequence[int] = 10,
    options: Mapping[str, OptionValue] | None = None,
    preset: str | None = None,
) -> list[Replay]:
    """Search a recorded grid once for each seed, with the search and the race of a study.

    ``strategy`` is a name or a subclass of :class:`autotune.Strategy`. ``dataset`` is the name or
    folder of a grid (``autotune dataset list``), ``cell`` one of its cells; it may be left out if
    there is one only. ``runs`` is the largest number of search runs. ``seeds`` are the seeds, or
    how many: each draws from another half of the recorded runs, and is judged on the other half.

    Raises UsageError for an unknown dataset, cell, strategy or option, and for a dataset that is no
    complete grid.
    """
    grid = load(str(dataset))
    keys = [one.key for one in grid.cells]
    if cell is None:
        if len(keys) != 1:
            raise UsageError(
                f"dataset {grid.name} has {len(keys)} cells; expected cell= with one of "
                f"{', '.join(keys)}",
                code="usage.argument",
            )
        cell = keys[0]
    landscape = Landscape(grid, cell)
    if not landscape.complete:
        raise UsageError(
            f"{landscape.name} is not complete: a replay needs at least {RUNS} runs of every "
            "setting (runs in the plan); one half judges what was found on the other",
            code="dataset.not_a_grid",
        )
    if runs < 1:
        raise UsageError(f"runs={runs}: expected at least 1", code="usage.argument")
    kind = find(strategy) if isinstance(strategy, str) else strategy
    values = resolve_options(kind, options or {}, preset)
    every = range(seeds) if isinstance(seeds, int) else seeds
    return [
        _search(landscape, kind(landscape.space, seed=seed, options=values), seed, runs, grid.name)
        for seed in every
    ]


def _search(landscape: Landscape, strategy: Strategy, seed: int, runs: int, dataset: str) -> Replay:
    half, held_out = landscape.halves(seed)
    evaluator = SimulatedEvaluator(_model(half), np.random.default_rng([31, seed]))
    trial_store = MemoryTrialStore()
    limited = Limited(strategy, runs, lambda: len(evaluator.history.entries))
    plan = SearchPlan(trials=None)
    search = SearchLoop(
        evaluator,
        trial_store,
        limited,  # type: ignore[arg-type]
        landscape.space,
        plan,
    )
    search.run()
    if len(evaluator.history.entries) < runs:  # The strategy ended by itself.
        Race(search.bench, trial_store.trials).run()
    known = race_evidence(evaluator.history.entries, trial_store.trials)
    hopeful = with_favourite(known.finalists(1, plan.min_gain), search.favourite)
    named = hopeful[0] if hopeful else DEFAULT
    ratio = held_out[landscape.effective(named)]
    gain = 1 / ratio - 1 if math.isfinite(ratio) else -1.0
    is_null = landscape.null or landscape.best.ratio >= 1
    return Replay(
        dataset,
        landscape.name.partition("/")[2],
        strategy.name,
        seed,
        named,
        ratio,
        math.nan if is_null else gain / landscape.best.gain,
        len(evaluator.history.entries),
        evaluator.history.launched_s,
        best_so_far(evaluator.history.entries, trial_store.trials),
        trial_store.trials,
    )


def _model(half: Landscape) -> Model:
    """Runs drawn from a half of the recorded ones; the default takes one second."""

    def seconds(setting: Setting, rng: np.random.Generator) -> float | str:
        run = half.draw(setting, rng)
        if run.state == "censored":
            # The recorded run was stopped, so it is stopped here, too, whatever the limit is.
            return max(run.ratio, 1.0) * STOPPED
        return run.ratio if run.state == "ok" else "failed"

    return seconds
