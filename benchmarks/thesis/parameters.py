"""The parameters of the prediction, chosen by correlation from random exploration (Pellegrini 4.6).

    python -m benchmarks.thesis.parameters [DATASET ...] [--plan grid-thesis-testbed]

In every cell: the Pearson correlation between the value of a parameter and the time (over that of
the default; a run was stopped at three times that). A parameter's figure is the mean of the
absolute values over the cells. Names have no order, so mapping, binding and algorithms are left
out; an unset parameter counts with the library's default. *by chance* is what 95 % of shuffled
times stay below. The four parameters with the largest figures must be those of the plan.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from autotune.anova.importance import LEAST
from autotune.anova.table import RunTable, dataset_table, numeric
from autotune.datasets import load
from autotune.datasets.plan import load_plan
from benchmarks.common import conclude, options, run_benchmark, table

DATASETS = ("explore-testbed", "explore-testbed-xeon")
PLAN = "grid-thesis-testbed"
CHOSEN = 4
SLOWEST = 3.0
"""Explorations stop a run at this multiple of the default's time."""
SHUFFLES = 400
NAMES = "_algorithm"
"""Parameters that end so have numbers, but these are names of algorithms."""


@dataclass(frozen=True)
class Correlation:
    """The correlations of one parameter with the time: one for each cell, and the level of the
    mean absolute value that chance exceeds in one of twenty shuffles."""

    name: str
    by_cell: dict[str, float]
    chance: float

    @property
    def mean(self) -> float:
        """The mean absolute correlation over the cells."""
        return statistics.fmean(map(abs, self.by_cell.values()))


def correlations(tables: list[RunTable], seed: int = 0) -> list[Correlation]:
    """The parameters with numbers, the largest mean absolute correlation first."""
    rng = np.random.default_rng(seed)
    by_name: dict[str, dict[str, float]] = {}
    shuffled: dict[str, list[np.ndarray]] = {}
    for one in tables:
        times = np.minimum(one.rows["ratio"].to_numpy(dtype=float), SLOWEST)
        for name in one.names:
            values = numeric(one, name)
            for cell in one.cells:
                own = (one.rows["cell"] == cell).to_numpy() & np.isfinite(values)
                x, y = _scaled(values[own]), _scaled(times[own])
                if name.endswith(NAMES) or own.sum() < LEAST or not (x.any() and y.any()):
                    continue
                by_name.setdefault(name, {})[cell] = float(x @ y)
                draws = rng.permuted(np.tile(y, (SHUFFLES, 1)), axis=1)
                shuffled.setdefault(name, []).append(np.abs(draws @ x))
    rows = [
        Correlation(name, cells, float(np.quantile(np.mean(shuffled[name], axis=0), 0.95)))
        for name, cells in by_name.items()
    ]
    return sorted(rows, key=lambda one: -one.mean)


def _scaled(values: np.ndarray) -> np.ndarray:
    """The values less their mean, of length 1; zeros if all are equal."""
    centred = values - values.mean() if values.size else values
    length = float(np.linalg.norm(centred))
    return centred / length if length > 1e-12 else np.zeros_like(values)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=list(DATASETS), metavar="DATASET")
    parser.add_argument("--plan", default=PLAN)
    given = parser.parse_args()
    ranking = correlations([dataset_table(load(name)) for name in given.datasets])
    names = {one.name for one in ranking[:CHOSEN]}
    table(
        [
            {
                "parameter": one.name,
                "mean |r|": f"{one.mean:.3f}",
                "by chance": f"{one.chance:.3f}",
                "lowest r": f"{min(one.by_cell.values()):+.2f}",
                "highest r": f"{max(one.by_cell.values()):+.2f}",
                "cells": len(one.by_cell),
                "chosen": "yes" if one.name in names else "",
            }
            for one in ranking
        ]
    )
    planned = {name for cell in load_plan(given.plan).cells for name in cell.levels or {}}
    failures = [] if planned == names else [f"{given.plan} has {', '.join(sorted(planned))}"]
    figures = {
        "datasets": given.datasets,
        "cells": len({cell for one in ranking for cell in one.by_cell}),
        "chosen": [one.name for one in ranking[:CHOSEN]],
        "correlations": {one.name: one.by_cell for one in ranking},
    }
    bound = f"{given.plan} varies the {CHOSEN} parameters with the largest correlations"
    return conclude("thesis parameters", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
