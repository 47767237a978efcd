"""Class-wide proofs on simulated run times: false answers, power, number of pairs.

The proof is the real one (pruning, looks, margin, mean gain). Only the launch is replaced by a draw
whose truth is known. A study has 1 to 8 programs of the class (2 to 8 if one of them differs from
the others) and one program that is held out.

Usage: python -m benchmarks.classwide_simulation [--studies 400] [--power-studies 200] [--json FILE]
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import stats

from autotune.anova.class_proof import prove_class
from autotune.anova.paired_runs import ClassProgram, PairTerms
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest, compare_on
from autotune.config.app import App
from autotune.config.cluster import Cluster
from autotune.space import Parameter, Setting, Space
from autotune.study.simulation import SimulatedEvaluator
from autotune.targets.target import Target
from benchmarks.common import report, run_benchmark
from benchmarks.harness.simulation import Row, Run, say, simulated, study_options
from runner.mpi.library import Library

LARGEST = 8
ACTING, IDLE = "acting", "idle"
PROPOSED = Setting({ACTING: 2, IDLE: 2})
"""The setting to prove: one parameter with the true effect, one parameter without effect."""


@dataclass(frozen=True)
class Truth:
    """The truth about a class: T_default / T - 1 of its programs and the noise of one run.

    ``odd_gain`` and ``odd_noise`` are those of one program that differs, if there is one.
    ``held_out`` is the gain of the program that is held out; None: as the others. ``right``:
    whether "proven" is a right answer.
    """

    gain: float
    noise: float
    odd_gain: float | None = None
    odd_noise: float | None = None
    held_out: float | None = None
    right: bool = False
    least: int = 1

    def of(self, number: int, size: int) -> tuple[float, float]:
        """Gain and noise of a program; number ``size`` is held out, number 0 may differ."""
        if number == size:
            return self.gain if self.held_out is None else self.held_out, self.noise
        odd = number == 0
        gain = self.odd_gain if odd and self.odd_gain is not None else self.gain
        return gain, self.odd_noise if odd and self.odd_noise is not None else self.noise


FALSE: dict[str, Truth] = {
    "nothing acts, 1 % noise": Truth(0.0, 0.01),
    "nothing acts, 2 % noise": Truth(0.0, 0.02),
    "nothing acts, 5 % noise": Truth(0.0, 0.05),
    "nothing acts, one with 25 % noise": Truth(0.0, 0.02, odd_noise=0.25),
    "one at the margin (-2 %), others +10 %": Truth(0.10, 0.02, odd_gain=-0.02, least=2),
    "one 4 % slower, others +10 %": Truth(0.10, 0.02, odd_gain=1 / 1.04 - 1, least=2),
    "one 4 % slower, 5 % noise, others +10 %": Truth(0.10, 0.05, odd_gain=1 / 1.04 - 1, least=2),
    "one 10 % slower, others +10 %": Truth(0.10, 0.02, odd_gain=1 / 1.10 - 1, least=2),
    "one 10 % slower, 25 % noise, others +10 %": Truth(
        0.10, 0.02, odd_gain=1 / 1.10 - 1, odd_noise=0.25, least=2
    ),
    "held out 4 % slower, class +10 %": Truth(0.10, 0.02, held_out=1 / 1.04 - 1),
}
POWER: dict[str, Truth] = {
    f"all {100 * gain:+.0f} %, {100 * noise:.0f} % noise": Truth(gain, noise, right=True)
    for gain in (0.05, 0.10)
    for noise in (0.02, 0.05)
} | {
    "all +10 %, one with 25 % noise": Truth(0.10, 0.02, odd_noise=0.25, right=True),
    "one at 0 %, others +10 %, 2 % noise": Truth(0.10, 0.02, odd_gain=0.0, right=True, least=2),
    "held out 0 %, class +10 %, 2 % noise": Truth(0.10, 0.02, held_out=0.0, right=True),
}


@dataclass(frozen=True)
class Study:
    """The outcome of one proof; ``answer`` is "proven", "open", "refused" or "ruled out"."""

    answer: str
    covered: bool
    """Whether the interval of the mean gain contains the truth; True if there is no interval."""
    pairs: float
    """Number of pairs of the proof, per program."""
    idle_kept: bool


def study(truth: Truth, seed: int) -> Study:
    """One class through pruning and proof; its size follows from the seed."""
    size = max(1 + seed % LARGEST, truth.least)
    evaluators = {str(n): _evaluator(truth.of(n, size), seed, n) for n in range(size + 1)}
    programs = [program(str(n), held_out=n == size) for n in range(size + 1)]

    def compare(request: ComparisonRequest) -> ComparisonOutcome:
        # Each comparison is a study with its own runs, as in the database.
        evaluator = evaluators[request.target.app.name](json.dumps(request.options))
        return compare_on(evaluator, request, "simulated")

    found = prove_class(PROPOSED, programs, PairTerms(compare, seed=seed))
    mean = sum(truth.of(n, size)[0] for n in range(size)) / size
    if ACTING not in found.setting:
        mean = 0.0
    covered = found.gain is None or found.gain.lo <= mean <= found.gain.hi
    pairs = sum(row.pairs for row in found.evidence) / len(found.evidence)
    return Study(_answer(found.proven, found.why), covered, pairs, IDLE in found.setting)


def _answer(proven: bool, why: str) -> str:
    if proven:
        return "proven"
    if why.startswith("not proven"):
        return "open"
    return "ruled out" if "ruled out" in why else "refused"


def _evaluator(
    truth: tuple[float, float], seed: int, number: int
) -> Callable[[str], SimulatedEvaluator]:
    gain, noise = truth
    rng = np.random.default_rng([seed, number, 23])

    def model(setting: Setting, rng: np.random.Generator) -> float:
        better = gain if setting.get(ACTING) == 2 else 0.0
        return float(rng.lognormal(0, noise)) / (1 + better)

    return cache(lambda words: SimulatedEvaluator(model, rng))


def program(name: str, *, held_out: bool) -> ClassProgram:
    """A program that is never launched."""
    target = Target(
        app=App(name=name, command=("simulated",)),
        input=None,
        ranks=2,
        cluster=Cluster(name="simulated"),
        library=Library("openmpi", "5.0", "", "mpirun"),
        cores=2,
    )
    names = (ACTING, IDLE)
    space = Space("simulated", tuple(Parameter(n, (1, 2), "mca") for n in names))
    return ClassProgram(target, space, held_out)


def allowed(studies: int, rate: float = 0.10, doubt: float = 0.05) -> int:
    """Most false answers for which a true rate of 10 % is refused with 95 % probability.

    -1 if there are too few studies to refuse it.
    """
    return int(stats.binom.ppf(doubt, studies, rate)) - 1


def bound(false: int, studies: int) -> float:
    """The exact upper end of a one-sided 95 % interval of the rate (Clopper and Pearson)."""
    return float(stats.beta.ppf(0.95, false + 1, studies - false)) if false < studies else 1.0


def by_name(name: str, seed: int) -> Study:
    """One study by the name of its truth, so that another process can run it."""
    return study((FALSE | POWER)[name], seed)


def row(run: Run, name: str, studies: int) -> Row:
    """Figures of many studies of one truth."""
    began = time.perf_counter()
    done = run(partial(by_name, name), studies)
    answers = Counter(one.answer for one in done)
    line: Row = {
        "truth": name,
        "studies": studies,
        "proven": answers["proven"],
        "open": answers["open"],
        "refused": answers["refused"],
        "ruled out": answers["ruled out"],
        "proven at most": round(bound(answers["proven"], studies), 4),
        "mean covered": round(sum(one.covered for one in done) / studies, 3),
        "pairs": round(sum(one.pairs for one in done) / studies, 1),
        "idle kept": sum(one.idle_kept for one in done),
        "seconds": round(time.perf_counter() - began, 1),
    }
    return say(line)


def main() -> int:
    arguments = study_options(__doc__, 400)
    arguments.add_argument("--power-studies", type=int, default=200)
    arguments.add_argument("--only", default="", help="truths whose name contains this")
    given = arguments.parse_args()
    with simulated() as run:
        false = [row(run, name, given.studies) for name in FALSE if given.only in name]
        power = [row(run, name, given.power_studies) for name in POWER if given.only in name]
    report("simulated class-wide proofs", {"false": false, "power": power}, given.json)
    return int(any(line["proven"] > allowed(given.studies) for line in false))


if __name__ == "__main__":
    run_benchmark(main)
