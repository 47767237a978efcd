"""Analysis of variance on pure noise: how often a parameter without effect is called significant.

The design is that of the thesis (Pellegrini): 1000 random settings of 27 parameters, the same in
each of 20 cells (5 programs x 2 inputs x 2 sizes). At 99.9 % confidence, 0.1 % of the factors may
be called significant. There are two cases. In the first, every run is independent noise (skewed,
heavy-tailed). In the second, one strong parameter stands beside 26 without effect; the thesis'
one-way test is known to fail there, because the rows of a setting are not independent.

Usage: python -m benchmarks.anova_null [--series 100] [--json FILE]
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from autotune.anova.factors import THESIS, FactorOptions, judge_factors
from autotune.anova.oneway import Values, respond
from autotune.anova.table import RunTable
from benchmarks.common import conclude, run_benchmark
from benchmarks.harness.synthetic_tables import cell_facts, random_settings, table_of
from benchmarks.null_studies import clopper_pearson

LEVELS: dict[str, list[int | float | str | None]] = {
    f"p{number:02d}": [None, *range(count)]
    for number, count in enumerate(
        [1, 1, 1, 1, 3, 10, 10, 5, 5, 3, 4, 10, 10, 10, 10, 15, 10, 10, 7, 1, 1, 6, 1, 8, 10, 10, 8]
    )
}
"""Numbers of levels of the 27 parameters of Pellegrini 1.4; the first level is the default."""
CELLS = cell_facts(["cg", "ep", "ft", "is", "mg"], ["A", "B"], [32, 64])
PROMISED = 0.001
MODELS = {
    "one-way": THESIS,
    "blocks": FactorOptions(model="blocks", correction="none"),
    "mixed": FactorOptions(model="mixed", correction="none"),
}
GUARDED = (("noise", "one-way"), ("noise", "blocks"), ("noise", "mixed"), ("one strong", "mixed"))


def design(rng: np.random.Generator) -> RunTable:
    """The design with runs; only the levels of each setting are used."""
    from benchmarks.harness.synthetic_tables import no_effect

    return table_of(random_settings(LEVELS, 1000, rng), CELLS, no_effect, rng)


def noise(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Skewed noise with bursts: 5 % of the runs scatter several times as far."""
    burst = np.where(rng.random(count) < 0.05, 4.0, 1.0)
    return np.asarray((rng.exponential(size=count) - 1.0) * burst, dtype=np.float64)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=100, help="simulated explorations")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    rng = np.random.default_rng(9)
    base = respond(design(rng), "log")
    names = base.table.names
    strong = base.table.codes("p05") * 0.3
    hits = {(kind, model): 0 for kind in ("noise", "one strong") for model in MODELS}
    for _ in range(given.series):
        own = noise(rng, len(base.y))
        for kind, y in (("noise", own), ("one strong", own + strong)):
            values = Values(base.table, y, "log")
            for model, options in MODELS.items():
                found = judge_factors(values, options)
                wrong = sum(f.significant for f in found if kind == "noise" or f.name != "p05")
                hits[kind, model] += wrong
    figures: dict[str, object] = {"series": given.series, "rows": len(base.y)}
    failures = []
    for (kind, model), count in hits.items():
        of = given.series * (len(names) - (kind != "noise"))
        low, high = clopper_pearson(count, of)
        figures[f"{kind}, {model}"] = f"{count} of {of} ({low:.4%} .. {high:.4%})"
        if (kind, model) in GUARDED and low > PROMISED:
            failures.append(f"{kind}, {model}: {count} of {of} false positives")
    bound = f"false positives compatible with {PROMISED:.1%} per factor (but one-way, one strong)"
    return conclude("ANOVA on noise", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
