"""Rechecks of published gains on simulated run times: wrong answers, power, number of pairs.

The comparison is the real one (blocks, looks, repeats if the machine drifts). Only the launch is
replaced by a draw from a noise model whose truth is known.

Usage: python -m benchmarks.published_simulation [--studies 600] [--pairs 60] [--json FILE]
"""

from __future__ import annotations

import statistics
from collections import Counter
from functools import partial

import numpy as np
from scipy.stats import binom

from autotune.measurement.budget import Budget
from autotune.publish.recheck import PAIRS, Claim, ClaimAnswer
from autotune.space import Setting
from autotune.study.proof import Blocks, confirm_blocks
from autotune.study.simulation import SimulatedEvaluator
from benchmarks.common import report, run_benchmark
from benchmarks.harness.simulation import Row, Run, say, simulated, study_options
from benchmarks.study_simulation import NOISES

ALPHA = 0.05
QUANTISED = "quantised"
_PUBLISHED = Setting({"p0": 2})


def look_again(
    noise: str, published: float, truth: float, pairs: int, seed: int
) -> tuple[ClaimAnswer, int]:
    """One recheck of a published gain whose true value is ``truth``; its answer and the pairs."""
    evaluator: SimulatedEvaluator

    def model(setting: Setting, rng: np.random.Generator) -> float:
        gain = truth if setting == _PUBLISHED else 0.0
        if noise == QUANTISED:
            # Rounded as it is printed, whatever the gain.
            return round(0.14 * rng.lognormal(0, 0.02) / (1 + gain), 2)
        return NOISES[noise](rng, len(evaluator.history.entries)) / (1 + gain)

    evaluator = SimulatedEvaluator(model, np.random.default_rng([seed, 23]))
    claim = Claim(published)
    blocks = Blocks(evaluator, "compare:0", [_PUBLISHED], seed, None)
    proof = confirm_blocks(blocks, claim.plan(pairs), Budget(evaluator.history))
    decision = proof.decisions[_PUBLISHED]
    return claim.answer(decision), decision.comparison.n


def outcome(
    noise: str, published: float, truth: float, pairs: int, seed: int
) -> tuple[str, bool, int]:
    """Status, whether the answer was "less than half", and pairs, for another process."""
    answer, spent = look_again(noise, published, truth, pairs, seed)
    return answer.status, bool(answer.shrunk), spent


def allowed(studies: int, rate: float = ALPHA) -> int:
    """Most wrong answers that a true ``rate`` gives with 99 % probability (binomial)."""
    return int(binom.ppf(0.99, studies, rate))


def refuses_twice_the_rate(studies: int) -> bool:
    """Whether a true rate of 10 % would exceed ``allowed`` with a probability of 95 % or more."""
    return float(binom.cdf(allowed(studies), studies, 2 * ALPHA)) <= 0.05


def row(run: Run, noise: str, published: float, truth: float, pairs: int, studies: int) -> Row:
    done = run(partial(outcome, noise, published, truth, pairs), studies)
    found = Counter(status for status, _, _ in done)
    # A gain of which half or more is left is not "gone"; a gain of 0 or less is not "there".
    wrong = found["gone"] if truth >= published / 2 else found["still there"] if truth <= 0 else 0
    line: Row = {
        "noise": noise,
        "published": published,
        "truth": truth,
        "studies": studies,
        "still there": found["still there"],
        "gone": found["gone"],
        "cannot be told": found["cannot be told"],
        "less than half": sum(shrunk for _, shrunk, _ in done),
        "wrong": wrong,
        "allowed": allowed(studies),
        "median pairs": statistics.median(n for _, _, n in done),
        "mean pairs": round(statistics.mean(n for _, _, n in done), 1),
    }
    return say(line)


def main() -> int:
    arguments = study_options(__doc__, 600)
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    arguments.add_argument("--noises", nargs="+", choices=sorted(NOISES), default=list(NOISES))
    given = arguments.parse_args()
    cases = [
        *((noise, 0.10, truth) for noise in NOISES for truth in (0.10, 0.05, 0.0)),
        *((noise, 0.05, truth) for noise in ("1 %", "5 %") for truth in (0.05, 0.025, 0.0)),
        *((noise, 0.10, truth) for noise in ("1 %", "5 %", "15 %") for truth in (0.03, -0.10)),
    ]
    with simulated() as run:
        rows = [
            row(run, noise, published, truth, given.pairs, given.studies)
            for noise, published, truth in cases
            if noise in given.noises
        ]
    report("published gains looked at again", {"pairs": given.pairs, "rows": rows}, given.json)
    return int(any(line["wrong"] > line["allowed"] for line in rows))


if __name__ == "__main__":
    run_benchmark(main)
