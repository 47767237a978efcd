"""Seconds for the one-way table of 20,000 runs x 27 parameters, and for the other models.

The bound is on processor time, so that another process does not make it fail.

Usage: python -m benchmarks.anova_speed [--json FILE]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from autotune.anova.factors import THESIS, FactorOptions, judge_factors
from autotune.anova.interactions import interactions
from autotune.anova.oneway import respond
from benchmarks.anova_null import design
from benchmarks.common import conclude, run_benchmark

BOUND_S = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    values = respond(design(np.random.default_rng(9)), "log")
    figures: dict[str, object] = {"rows": len(values.y), "parameters": len(values.table.names)}
    judge_factors(values, THESIS)  # what is imported on the first call is no part of the figure
    spent = {}
    for model in (
        THESIS,
        FactorOptions(model="blocks"),
        FactorOptions(model="mixed"),
        FactorOptions(model="rank"),
    ):
        began = time.process_time()
        judge_factors(values, model)
        spent[model.model] = time.process_time() - began
        figures[f"{model.model}_s"] = round(spent[model.model], 3)
    began = time.process_time()
    interactions(values, values.table.names)
    figures["pairs_s"] = round(time.process_time() - began, 3)
    failures = []
    if spent["oneway"] > BOUND_S:
        failures.append(f"one-way took {spent['oneway']:.2f} s")
    bound = f"one-way table <= {BOUND_S} s"
    return conclude("ANOVA speed", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
