"""Whole studies on simulated run times: false winners, power, number of runs.

All decisions are those of the real procedure (search, selection, pruning, proof). Only the launch
is replaced by a draw from a noise model whose truth is known.

Usage: python -m benchmarks.study_simulation [--studies 1000] [--candidates 40 200] [--json FILE]
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np

from autotune.measurement.budget import SearchPlan
from autotune.space import Parameter, Setting, Space
from autotune.strategies import create
from autotune.study.procedure import run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from benchmarks.common import run_benchmark
from benchmarks.harness.simulation import Row, Run, conclude_rows, say, simulated, study_options

Noise = Callable[[np.random.Generator, int], float]


def normal(cv: float) -> Noise:
    return lambda rng, order: float(rng.lognormal(0, cv))


def heavy(rng: np.random.Generator, order: int) -> float:
    """5 % noise; every tenth run takes up to three times as long."""
    slow = 1 + rng.pareto(2.0) if rng.random() < 0.1 else 1.0
    return float(rng.lognormal(0, 0.05) * min(slow, 3.0))


def bimodal(rng: np.random.Generator, order: int) -> float:
    """Two states of the machine, 20 % apart, chosen at random for each run."""
    return float(rng.lognormal(0, 0.02) * (1.2 if rng.random() < 0.4 else 1.0))


def drift(rng: np.random.Generator, order: int) -> float:
    """5 % noise on a machine whose speed swings by a factor of two over 150 runs."""
    return float(rng.lognormal(0, 0.05) * (1.5 + 0.5 * math.sin(order / 24)))


def quantised(rng: np.random.Generator, order: int) -> float:
    """2 % noise on a figure of 0.14 s that is printed with two decimals (NPB IS.A)."""
    return float(round(0.14 * rng.lognormal(0, 0.02), 2))


NOISES: dict[str, Noise] = {
    "1 %": normal(0.01),
    "5 %": normal(0.05),
    "15 %": normal(0.15),
    "heavy tail": heavy,
    "bimodal": bimodal,
    "drift": drift,
    "quantised": quantised,
}


def space() -> Space:
    """Eight parameters of four levels: 65,536 settings."""
    return Space(
        "simulated",
        tuple(Parameter(name=f"p{i}", levels=(1, 2, 3, 4), target="mca") for i in range(8)),
    )


def study(noise: Noise, seed: int, candidates: int, gain: float) -> tuple[Setting | None, int, int]:
    """One study (with ``gain`` > 0, p0=2 has that gain): chosen, search runs, proof runs."""

    evaluator: SimulatedEvaluator

    def model(setting: Setting, rng: np.random.Generator) -> float:
        better = gain if setting.get("p0") == 2 else 0.0
        return noise(rng, len(evaluator.history.entries)) / (1 + better)

    evaluator = SimulatedEvaluator(model, np.random.default_rng([seed, 77]))
    where = space()
    strategy = create("random", where, seed=seed)
    answer = run_procedure(
        evaluator, MemoryTrialStore(), strategy, where, SearchPlan(trials=candidates), seed
    )
    return answer.setting, evaluator.history.search_runs, evaluator.history.confirmation_runs


def outcome(noise: str, candidates: int, gain: float, seed: int) -> tuple[str, int, int]:
    """One study by the name of its noise, so that another process can run it."""
    chosen, searched, proven = study(NOISES[noise], seed, candidates, gain)
    if chosen is None:
        return "default", searched, proven
    return ("right" if gain and chosen.get("p0") == 2 else "false"), searched, proven


def row(run: Run, noise: str, studies: int, candidates: int, gain: float) -> Row:
    began = time.perf_counter()
    done = run(partial(outcome, noise, candidates, gain), studies)
    found = Counter(kind for kind, _, _ in done)
    line: Row = {
        "noise": noise,
        "gain": gain,
        "studies": studies,
        "candidates": candidates,
        "false": found["false"],
        "allowed": allowed(studies),
        "right": found["right"],
        "search_runs": round(sum(searched for _, searched, _ in done) / studies, 1),
        "proof_runs": round(sum(proven for _, _, proven in done) / studies, 1),
        "seconds": round(time.perf_counter() - began, 1),
    }
    return say(line)


def allowed(studies: int) -> int:
    """Allowed number of false answers: 5 % of the studies, plus two Monte-Carlo standard errors."""
    return math.floor(studies * 0.05 + 2 * math.sqrt(studies * 0.05 * 0.95))


def main() -> int:
    arguments = study_options(__doc__, 1000)
    arguments.add_argument("--candidates", type=int, nargs="+", default=[40, 200])
    arguments.add_argument("--power-studies", type=int, default=300)
    given = arguments.parse_args()
    with simulated() as run:
        null = [
            row(run, name, given.studies, candidates, 0.0)
            for candidates in given.candidates
            for name in NOISES
        ]
        power = [
            row(run, name, given.power_studies, 40, gain)
            for name in ("1 %", "5 %", "15 %")
            for gain in (0.02, 0.05, 0.10)
        ]
    tables = {"null": null, "power": power}
    return conclude_rows("simulated studies", tables, [*null, *power], given.json)


if __name__ == "__main__":
    run_benchmark(main)
