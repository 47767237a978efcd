"""Racing against a grid on simulated run times: a section of ``benchmarks.stats_simulation``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autotune.stats import finalists, next_run, posterior

Row = dict[str, Any]
Array = np.typing.NDArray[np.float64]


def racing(studies: int = 150, repeats: int = 5) -> list[Row]:
    """Racing with at most a third of the runs of a grid that runs every setting 5 times.

    Figures are true gains of the chosen setting: by the grid's best median, by the race's estimate,
    and of the best of up to three finalists (what a proof can find) of either.
    """
    rows = []
    for settings in (24, 60, 200):
        for cv in (0.01, 0.05, 0.15):
            figures, runs = [], []
            for seed in range(studies):
                rng = np.random.default_rng([14, seed])
                effect = _effects(rng, settings)
                medians = np.median(_runs(rng, effect[:, None], cv, (settings, repeats)), axis=1)
                data = _race(rng, effect, cv, settings * repeats // 3)
                seen = posterior(data, cv)
                pick = int(np.argmin(seen.mean))
                few = finalists(data, cv)
                figures.append(
                    (
                        -effect[np.argmin(medians)],
                        -effect[pick] if seen.mean[pick] < 0 else 0.0,
                        -effect[np.argsort(medians)[:3]].min(),
                        -effect[few].min() if few else 0.0,
                        -effect.min(),
                    )
                )
                runs.append(sum(map(len, data)))
            gains = np.expm1(np.array(figures))
            apart = gains[:, 1] - gains[:, 0]
            means = gains.mean(axis=0)
            rows.append(
                {
                    "settings": settings,
                    "noise cv": cv,
                    "gain by grid": means[0],
                    "gain by racing": means[1],
                    "difference": apart.mean(),
                    "its std. error": apart.std(ddof=1) / math.sqrt(studies),
                    "grid's best 3": means[2],
                    "racing's finalists": means[3],
                    "best there is": means[4],
                    "grid runs": settings * repeats,
                    "racing runs": float(np.mean(runs)),
                    "fewer by": settings * repeats / float(np.mean(runs)),
                }
            )
    return rows


def _effects(rng: np.random.Generator, n: int) -> Array:
    """True log ratios of a space: half without effect, some slower or far slower, few faster."""
    kind = rng.random(n)
    slower = rng.uniform(0.02, 0.3, n)
    cliff = np.log(rng.uniform(1.3, 16, n))
    faster = -rng.uniform(0.01, 0.15, n)
    return np.select([kind < 0.55, kind < 0.75, kind < 0.92], [np.zeros(n), slower, cliff], faster)


def _runs(rng: np.random.Generator, effect: Array, cv: float, shape: tuple[int, ...]) -> Array:
    """Log ratios of runs: normal noise; one run in twenty is clearly slower."""
    late = rng.exponential(3 * cv, shape) * (rng.random(shape) < 0.05)
    return np.asarray(effect + rng.normal(0, cv, shape) + late)


def _race(rng: np.random.Generator, effect: Array, cv: float, most: int) -> list[list[float]]:
    """One run each, censored at three times the default; then runs that can change the answer."""
    first = _runs(rng, effect, cv, effect.shape)
    data = [[math.inf if x > math.log(3) else math.exp(x)] for x in first]
    while sum(map(len, data)) < most and (i := next_run(data, cv)) is not None:
        data[i].append(math.exp(_runs(rng, effect[i : i + 1], cv, (1,))[0]))
    return data
