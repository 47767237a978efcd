"""Recommendations of simulated studies against every known way to a false one.

It runs the real procedure on drawn run times, as benchmarks.study_simulation does. The cases are
studies that are extended, candidates whose noise has another shape, parameters without effect in a
winning setting, gains of proofs that stop early, and slow launches.

Usage: python -m benchmarks.trust_simulation [--studies 400] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import HistoryEntry
from autotune.space import DEFAULT, Setting
from autotune.strategies import create
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from benchmarks.common import run_benchmark
from benchmarks.harness.simulation import Row, Run, conclude_rows, say, simulated, study_options
from benchmarks.study_simulation import space

CANDIDATES = 40
Model = Callable[[Setting, np.random.Generator, int], float]
"""Seconds of a run of a setting, given the number of runs before it."""


def allowed(studies: int, rate: float = 0.05) -> int:
    """Number of false answers that is exceeded with at most 2.5 % probability (exact binomial)."""
    return int(stats.binom.ppf(0.975, studies, rate))


def refused(studies: int, rate: float = 0.05, true_rate: float = 0.10) -> float:
    """Probability that ``allowed`` refuses a procedure whose true rate is ``true_rate``."""
    return float(stats.binom.sf(allowed(studies, rate), studies, true_rate))


class Killed(Exception):
    """Stands for kill -9 in the simulation."""


@dataclass
class MortalEvaluator(SimulatedEvaluator):
    """An evaluator that is killed after so many runs; None: never."""

    life: int | None = None

    def run(self, *args: Any, **more: Any) -> HistoryEntry:
        if self.life is not None:
            if self.life == 0:
                raise Killed
            self.life -= 1
        return super().run(*args, **more)


@dataclass
class SimulatedStudy:
    """A study that can be continued: its run history, trials and plans stay."""

    model: Model
    seed: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 77])
        self.evaluator = MortalEvaluator(
            lambda s, r: self.model(s, r, len(self.evaluator.history.entries)), rng
        )
        self.trial_store = MemoryTrialStore()

    def go_on(self, plan: SearchPlan, life: int | None = None) -> StudyOutcome | None:
        """Run to the end of the plan; None if the study was killed after ``life`` runs."""
        self.evaluator.life = life
        strategy = create("random", space(), seed=self.seed)
        try:
            return run_procedure(
                self.evaluator, self.trial_store, strategy, space(), plan, self.seed
            )
        except Killed:
            return None


def flat(cv: float = 0.05) -> Model:
    return lambda setting, rng, order: float(rng.lognormal(0, cv))


def sometimes_slow(setting: Setting, rng: np.random.Generator, order: int) -> float:
    """Every candidate is 1.3 times slower in 30 % of its runs, otherwise as the default."""
    slow = 1.3 if setting != DEFAULT and rng.random() < 0.3 else 1.0
    return float(slow * rng.lognormal(0, 0.05))


def other_shape(setting: Setting, rng: np.random.Generator, order: int) -> float:
    """Candidates have a long slow tail, such that the median of their ratio is 1."""
    noise = float(rng.normal(0, 0.05))
    if setting != DEFAULT:
        # Median of tail - N(0, 0.05 * sqrt(2)) as in benchmarks.harness.simulated_times.
        tail = rng.exponential(8) if rng.random() < 0.3 else 0.0
        noise = 0.05 * (float(rng.normal()) + tail - 0.623228)
    return math.exp(noise)


def steadier(setting: Setting, rng: np.random.Generator, order: int) -> float:
    """Candidates scatter by 1 %, the default by 10 %; the medians are equal."""
    return float(rng.lognormal(0, 0.10 if setting == DEFAULT else 0.01))


def machine_spells(setting: Setting, rng: np.random.Generator, order: int) -> float:
    """The machine takes 1.5 times as long in spells of 20 runs, a third of the time."""
    phase = np.random.default_rng([order // 20, 5]).random() < 1 / 3
    return float((1.5 if phase else 1.0) * rng.lognormal(0, 0.05))


ADVERSE: dict[str, Model] = {
    "candidates 1.3x slow in 30 % of runs": sometimes_slow,
    "candidates with a slow tail": other_shape,
    "candidates steadier than the default": steadier,
    "slow spells of 20 runs, 1.5x": machine_spells,
}

EXTENSIONS = ("trials", "budget", "kill")


def extended(kind: str, extensions: int, seed: int) -> bool:
    """Whether a study without any effect named a winner, at its end or before an extension."""
    study = SimulatedStudy(flat(), seed)
    if kind == "kill":
        answer = None
        for number in range(extensions + 1):
            life = None if number == extensions else 60
            answer = study.go_on(SearchPlan(trials=20), life)
            if answer is not None:
                break
        return answer is not None and answer.setting is not None
    for number in range(extensions + 1):
        if kind == "trials":
            plan = SearchPlan(trials=20 + 10 * number)
        else:
            plan = SearchPlan(trials=None, max_runs=100 + 60 * number)
        answer = study.go_on(plan)
        if answer is not None and answer.setting is not None:
            return True
    return False


def adverse(name: str, seed: int) -> bool:
    """Whether a study in which no candidate has a gain named a winner."""
    answer = SimulatedStudy(ADVERSE[name], seed).go_on(SearchPlan(trials=CANDIDATES))
    return answer is not None and answer.setting is not None


def acting(gain: float, cv: float) -> Model:
    """p0=2 has a gain; the other seven parameters have no effect."""

    def model(setting: Setting, rng: np.random.Generator, order: int) -> float:
        return float(rng.lognormal(0, cv)) / (1 + (gain if setting.get("p0") == 2 else 0.0))

    return model


@dataclass(frozen=True)
class Named:
    """What a study with one parameter that has an effect named."""

    right: bool = False
    false: bool = False
    riders: int = 0
    said_slim: bool = False
    non_inferior: bool | None = None
    gain: float = math.nan
    fresh: float = math.nan
    stopped: int = 0
    runs: int = 0


def named(gain: float, cv: float, seed: int) -> Named:
    study = SimulatedStudy(acting(gain, cv), seed)
    answer = study.go_on(SearchPlan(trials=CANDIDATES))
    assert answer is not None
    made = answer.recommendation
    runs = len(study.evaluator.history.entries)
    if made is None:
        return Named(runs=runs)
    right = made.setting.get("p0") == 2
    return Named(
        right=right,
        false=not right,
        riders=len(made.setting) - right,
        said_slim=made.pruning.state != "not pruned",
        non_inferior=made.pruning.non_inferior,
        gain=made.decision.comparison.gain,
        fresh=math.nan if made.fresh is None else made.fresh.gain,
        stopped=made.decision.comparison.n,
        runs=runs,
    )


def with_slow_launches(default: float, candidate: float, gain: float) -> Model:
    """Launches take five times as long with these probabilities, ``default`` or ``candidate``.

    p0=2 has the gain and the probability ``candidate``.
    """

    def model(setting: Setting, rng: np.random.Generator, order: int) -> float:
        acts = setting.get("p0") == 2
        slow = 5.0 if rng.random() < (candidate if acts else default) else 1.0
        return slow * float(rng.lognormal(0, 0.02)) / (1 + (gain if acts else 0.0))

    return model


def slow_named(default: float, candidate: float, gain: float, seed: int) -> str:
    """The study's words on slow launches of the named setting; "vetoed"; "" if none is named."""
    study = SimulatedStudy(with_slow_launches(default, candidate, gain), seed)
    answer = study.go_on(SearchPlan(trials=CANDIDATES))
    assert answer is not None
    if answer.recommendation is not None:
        return answer.recommendation.slow.verdict
    return "vetoed" if answer.with_objections else ""


def extension_rows(run: Run, studies: int) -> list[Row]:
    return [
        _false_row(f"{kind}, {count} times", sum(run(partial(extended, kind, count), studies)), n)
        for kind in EXTENSIONS
        for count in range(6)
        for n in (studies,)
    ]


def adverse_rows(run: Run, studies: int) -> list[Row]:
    return [
        _false_row(name, sum(run(partial(adverse, name), studies)), studies) for name in ADVERSE
    ]


def gain_rows(run: Run, studies: int) -> list[Row]:
    """Parameters without effect in the named setting, pruning, and the gain of early stops."""
    rows = []
    for cv, gain in ((0.01, 0.05), (0.05, 0.05), (0.05, 0.10), (0.15, 0.30)):
        found: list[Named] = run(partial(named, gain, cv), studies)
        right = [one for one in found if one.right]
        whole = [one for one in right if not math.isnan(one.fresh)]
        row = {
            "noise": cv,
            "gain": gain,
            "studies": studies,
            "found": len(right),
            "false": sum(one.false for one in found),
            "allowed": allowed(studies),
            "riders, said slim": sum(one.riders > 0 and one.said_slim for one in right),
            "not pruned": sum(not one.said_slim for one in right),
            "shown as good as the whole": sum(one.non_inferior is True for one in right),
            "stopped at": round(statistics.fmean(one.stopped for one in right), 1),
            "gain printed": round(statistics.fmean(one.gain for one in right), 4),
            "fresh gain": round(statistics.fmean(one.fresh for one in whole), 4),
            "fresh n": len(whole),
            "runs": round(statistics.fmean(one.runs for one in found), 1),
        }
        rows.append(say(row))
    return rows


SLOW_CASES = (
    ("nobody differs", 0.20, 0.20, 0.10),
    ("the candidate has none", 0.20, 0.0, 0.10),
    ("the candidate alone has them", 0.0, 0.20, 0.10),
)


def slow_rows(run: Run, studies: int) -> list[Row]:
    rows = []
    for name, default, candidate, gain in SLOW_CASES:
        said: list[str] = run(partial(slow_named, default, candidate, gain), studies)
        counts = {word: said.count(word) for word in ("rarer", "more frequent", "vetoed")}
        row = {"case": name, "default": default, "candidate": candidate, "gain": gain}
        row |= {"studies": studies, "named": sum(word not in ("", "vetoed") for word in said)}
        rows.append(say(row | counts))
    return rows


def _false_row(name: str, false: int, studies: int) -> Row:
    row = {"case": name, "studies": studies, "false": false, "allowed": allowed(studies)}
    return say(row | {"refuses 10 % with": round(refused(studies), 3)})


TABLES: dict[str, Callable[[Run, int], list[Row]]] = {
    "extensions": extension_rows,
    "adverse": adverse_rows,
    "gains": gain_rows,
    "slow": slow_rows,
}


def main() -> int:
    arguments = study_options(__doc__, 400)
    arguments.add_argument("--only", choices=TABLES, nargs="+", default=list(TABLES))
    given = arguments.parse_args()
    began = time.perf_counter()
    with simulated() as run:
        tables = {name: TABLES[name](run, given.studies) for name in given.only}
    seconds = round(time.perf_counter() - began, 1)
    rows = [row for table in tables.values() for row in table]
    figures = tables | {"seconds": seconds}
    return conclude_rows("ways to a false recommendation", figures, rows, given.json)


if __name__ == "__main__":
    run_benchmark(main)
