"""Synthetic tables with known effects, to check the results of the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.anova.table import CellFacts, CellRuns, RunTable, build_table
from autotune.space import DEFAULT, Setting, Value

Effect = Callable[[Setting, CellFacts], float]
"""log(T / T_default) of a setting on a cell; negative is faster."""


def no_effect(setting: Setting, place: CellFacts) -> float:
    """0 for every setting and cell."""
    return 0.0


def additive(effects: Mapping[str, Mapping[Value, float]]) -> Effect:
    """The same effect of every level on every cell; a level that is not named has none."""

    def effect(setting: Setting, place: CellFacts) -> float:
        return sum(effects.get(name, {}).get(value, 0.0) for name, value in setting.items())

    return effect


def random_settings(
    levels: Mapping[str, Sequence[Value | None]], count: int, rng: np.random.Generator
) -> list[Setting]:
    """Distinct settings, each parameter uniform over its levels (None: unset); none is the default.

    Returns fewer than ``count`` if the space has too few settings.
    """
    settings: dict[Setting, None] = {}
    for _ in range(20 * count):
        choices = {name: values[int(rng.integers(len(values)))] for name, values in levels.items()}
        setting = Setting({name: value for name, value in choices.items() if value is not None})
        if setting != DEFAULT:
            settings[setting] = None
        if len(settings) == count:
            break
    return list(settings)


def simulate_runs(
    settings: Sequence[Setting],
    places: Sequence[CellFacts],
    effect: Effect,
    rng: np.random.Generator,
    *,
    noise: float = 0.03,
    repeats: int = 40,
    defaults: int = 24,
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]] | None = None,
) -> list[CellRuns]:
    """Simulated runs of every setting on every place, in the order of ``autotune explore``: one run
    of each setting, three more of the best and of a random half of ``repeats``, and ``defaults``
    runs of the default.

    ``draw`` gives standard noise of another distribution than the normal one; ``noise`` scales it.
    """
    import pandas as pd

    shape = draw or (lambda r, n: r.standard_normal(n))
    cells = []
    for place in places:
        truth = np.array([effect(setting, place) for setting in settings])
        first_logs = truth + noise * shape(rng, len(settings))
        best = np.argsort(first_logs)[: repeats // 2]
        others = rng.permutation(len(settings))[: repeats - repeats // 2]
        repeat_indices = np.repeat(np.concatenate([best, others]), 3).astype(int)
        logs = [
            noise * shape(rng, defaults),
            first_logs,
            truth[repeat_indices] + noise * shape(rng, len(repeat_indices)),
        ]
        keys = [setting.key for setting in settings]
        runs = pd.DataFrame(
            {
                "key": [DEFAULT.key] * defaults + keys + [keys[i] for i in repeat_indices],
                "ratio": np.exp(np.concatenate(logs)),
                "ok": True,
            }
        )
        cells.append(CellRuns(place, runs))
    return cells


def table_of(
    settings: Sequence[Setting],
    places: Sequence[CellFacts],
    effect: Effect,
    rng: np.random.Generator,
    noise: float = 0.03,
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]] | None = None,
) -> RunTable:
    """The table of the runs of :func:`simulate_runs`."""
    cells = simulate_runs(settings, places, effect, rng, noise=noise, draw=draw)
    by_key = {setting.key: setting for setting in [DEFAULT, *settings]}
    return build_table("simulated runs", cells, by_key, {})


def cell_facts(apps: Sequence[str], inputs: Sequence[str], ranks: Sequence[int]) -> list[CellFacts]:
    """One cell for every combination of application, input and number of ranks."""
    return [
        CellFacts(f"{app}.{input_name}.{n}", app, input_name, n)
        for app in apps
        for input_name in inputs
        for n in ranks
    ]
