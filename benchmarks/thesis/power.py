"""How large an exploration has to be until an analysis of variance finds what helps a class.

    python -m benchmarks.thesis.power [--series 40] [--json FILE]

Simulated explorations of the 27 parameters of the thesis (with its numbers of levels), in three
designs: that of ``explore-testbed`` (120 settings, four programs), of ``explore-thesis-testbed``
(300, eight), and of the thesis (1000 settings, five programs with two inputs and two sizes, every
parameter set). In the first two a setting keeps 40 % of its parameters. One parameter of ten levels
makes every program 10 % faster at its two best levels; with *one strong* another one halves the
speed; the others have no effect. Runs have 5 % noise.

*finds it*: share of the explorations in which the analysis sets the parameter to one of the two
levels. *wrong*: parameters that it sets without need, the mean over the explorations.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.anova.factors import THESIS, FactorOptions, chosen_setting, judge_factors
from autotune.anova.oneway import respond
from autotune.anova.table import CellFacts, RunTable
from autotune.errors import WorkError
from autotune.space import Setting, Value
from autotune.wording import share
from benchmarks.anova_null import CELLS, LEVELS
from benchmarks.common import options, positive, report, run_benchmark, table
from benchmarks.harness.synthetic_tables import additive, cell_facts, random_settings, table_of

GOOD, BEST_LEVELS, GAIN = "p11", (8, 9), 0.10
STRONG, LOSS = "p00", 2.0
NOISE = 0.05
ANALYSES = {"thesis": THESIS, "careful": FactorOptions()}


@dataclass(frozen=True)
class Design:
    """An exploration; ``keep``: the share of its parameters that a random setting names."""

    name: str
    settings: int
    cells: Sequence[CellFacts]
    keep: float

    def levels(self) -> dict[str, list[Value | None]]:
        """The levels to draw from; None as often as a parameter is left out."""
        unset = {
            name: max(round((len(values) - 1) * (1 / self.keep - 1)) - 1, 0)
            for name, values in LEVELS.items()
        }
        return {name: [*[None] * unset[name], *values] for name, values in LEVELS.items()}

    def runs(self, strong: bool, rng: np.random.Generator) -> RunTable:
        """A simulated exploration."""
        effects: dict[str, dict[Value, float]] = {
            GOOD: dict.fromkeys(BEST_LEVELS, -math.log1p(GAIN))
        }
        if strong:
            effects[STRONG] = {0: math.log(LOSS)}
        drawn = random_settings(self.levels(), self.settings, rng)
        return table_of(drawn, self.cells, additive(effects), rng, noise=NOISE)


PROGRAMS = ("is", "cg", "mg", "ft", "ep", "lu", "sp", "bt")
DESIGNS = (
    Design("explore-testbed", 120, cell_facts(PROGRAMS[:4], ["S"], [4]), 0.4),
    Design("explore-thesis-testbed", 300, cell_facts(PROGRAMS, ["S"], [4]), 0.4),
    Design("the thesis", 1000, CELLS, 1.0),
)


def answer(runs: RunTable, judged_by: FactorOptions) -> Setting:
    """The setting that an analysis chooses; the default if no cell can gain."""
    try:
        return chosen_setting(judge_factors(respond(runs, "gain"), judged_by))
    except WorkError:
        return Setting()


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--series", type=positive, default=40, help="simulated explorations")
    given = parser.parse_args()
    rows = []
    for design in DESIGNS:
        for strong in (False, True):
            rng = np.random.default_rng(17)
            answers: dict[str, list[Setting]] = {name: [] for name in ANALYSES}
            for _ in range(given.series):
                runs = design.runs(strong, rng)
                for name, how in ANALYSES.items():
                    answers[name].append(answer(runs, how))
            for name, chosen in answers.items():
                hits = [setting.get(GOOD) in BEST_LEVELS for setting in chosen]
                wrong = [len(setting) - hit for setting, hit in zip(chosen, hits, strict=True)]
                rows.append(
                    {
                        "design": design.name,
                        "settings": design.settings,
                        "cells": len(design.cells),
                        "one strong": "yes" if strong else "no",
                        "analysis": name,
                        "finds it": share(statistics.fmean(hits)),
                        "wrong": f"{statistics.fmean(wrong):.2f}",
                    }
                )
    table(rows)
    report("thesis power", {"series": given.series, "rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
