"""The main command on simulated run times: runs by kind, power, false answers.

The procedure is the real one with the real strategy, 100 trials in a space of 20 parameters. Run
times are drawn: a few levels act, one level in twelve costs 10 to 100 %, the others do nothing.

Usage: python -m benchmarks.main_simulation [--studies 100] [--strategy ga] [--trials 100]
                                            [--case NAME ...] [--json FILE]
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np

from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import CONFIRM, HistoryEntry
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.strategies import create
from autotune.study.conclusion import judge_status
from autotune.study.procedure import run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from benchmarks.common import run_benchmark
from benchmarks.harness.simulation import Row, Run, conclude_rows, say, simulated, study_options
from benchmarks.study_simulation import NOISES, allowed

LEVELS = (2, 3, 4, 6, 9, 6, 6, 4, 3, 4, 4, 3, 2, 4, 2, 4, 4, 3, 3, 6)
"""Numbers of levels, about those of the shipped space that a program without collectives uses."""
COSTLY = 1 / 12
"""Share of levels that cost time."""
KINDS = ("warmup", "default", "search", "race", "ablation", "proof", "slim", "fresh")
"""Kinds of runs; "slim": a pruned setting beside the whole one, after the proof."""


@dataclass(frozen=True)
class Case:
    """A machine and a program: its noise, and ``gain`` shared by ``acting`` levels."""

    noise: str
    gain: float
    acting: int = 1


CASES = {
    "null, 1 %": Case("1 %", 0.0),
    "null, 5 %": Case("5 %", 0.0),
    "null, 15 %": Case("15 %", 0.0),
    "10 % at 1 %": Case("1 %", 0.10),
    "10 % at 5 %": Case("5 %", 0.10),
    "10 % at 15 %": Case("15 %", 0.10),
    "30 % at 15 %": Case("15 %", 0.30),
    "20 % of three at 5 %": Case("5 %", 0.20, 3),
}


@dataclass(frozen=True)
class Program:
    """Factors of the time by level; all others are 1."""

    space: Space
    factors: dict[tuple[str, object], float]
    acting: frozenset[tuple[str, object]]

    def ratio(self, setting: Setting) -> float:
        """The true T / T_default of a setting."""
        ratio = 1.0
        for level in setting.items():
            ratio *= self.factors.get(level, 1.0)
        return ratio


def program(case: Case, seed: int) -> Program:
    """The program of one study: other levels act and cost time for each seed."""
    rng = np.random.default_rng([seed, 5])
    space = Space(
        "main",
        tuple(
            Parameter(name=f"p{i:02d}", levels=tuple(range(1, count + 1)), target="mca")
            for i, count in enumerate(LEVELS)
        ),
    )
    factors: dict[tuple[str, object], float] = {
        (parameter.name, level): float(rng.uniform(1.1, 2.0))
        for parameter in space
        for level in parameter.levels
        if rng.random() < COSTLY
    }
    names = rng.permutation([parameter.name for parameter in space])[: case.acting]
    acting = {(str(name), int(rng.choice(space[str(name)].levels))) for name in names}
    factors |= dict.fromkeys(acting, (1 + case.gain) ** (-1 / case.acting))
    return Program(space, factors, frozenset(acting) if case.gain else frozenset())


@dataclass(frozen=True)
class Outcome:
    """How one study ended.

    ``tried``: its search ran a setting with half of the gain. ``right``: the answer has half of it.
    ``false``: the answer has no gain. ``riders``: it has parameters that do nothing and are not
    said to be left.
    """

    status: str
    runs: Counter[str]
    tried: bool = False
    right: bool = False
    false: bool = False
    riders: bool = False


def kind_of(entry: HistoryEntry) -> str:
    """The kind of a run, one of :data:`KINDS`."""
    if entry.kind != CONFIRM:
        return {"prune": "ablation"}.get(entry.kind, entry.kind)
    part = [*entry.phase.split(":"), "again"][2]
    return "proof" if part == "again" else part


def study(case: Case, strategy: str, trials: int, seed: int) -> Outcome:
    """One study of the main command on a simulated program."""
    made = program(case, seed)
    evaluator: SimulatedEvaluator

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return made.ratio(setting) * NOISES[case.noise](rng, len(evaluator.history.entries))

    evaluator = SimulatedEvaluator(model, np.random.default_rng([seed, 77]))
    search = create(strategy, made.space, seed=seed)
    plan = SearchPlan(trials=trials)
    answer = run_procedure(evaluator, MemoryTrialStore(), search, made.space, plan, seed)
    bar = (1 + case.gain) ** -0.5
    tried = any(made.ratio(t.effective) <= bar for t in answer.trials)
    chosen = answer.setting or DEFAULT
    pruning = answer.recommendation.pruning.state if answer.recommendation else ""
    return Outcome(
        judge_status(answer, evaluator.history, True),
        Counter(kind_of(entry) for entry in evaluator.history.entries),
        tried=bool(case.gain) and tried,
        right=bool(case.gain) and made.ratio(chosen) <= bar,
        false=chosen != DEFAULT and made.ratio(chosen) >= 1,
        riders=pruning != "not pruned" and any(x not in made.acting for x in chosen.items()),
    )


def row(run: Run, name: str, studies: int, strategy: str, trials: int) -> Row:
    """The figures of one case; runs are means per study."""
    began = time.perf_counter()
    done = run(partial(study, CASES[name], strategy, trials), studies)
    runs: Counter[str] = sum((one.runs for one in done), Counter())
    line: Row = {
        "case": name,
        "studies": studies,
        "false": sum(one.false for one in done),
        "allowed": allowed(studies),
        "tried": sum(one.tried for one in done),
        "proven": sum(one.right for one in done),
        "riders": sum(one.riders for one in done),
        **Counter(one.status for one in done),
        "runs": round(runs.total() / studies, 1),
        "after_search": round((runs.total() - runs["search"]) / studies, 1),
        **{kind: round(runs[kind] / studies, 1) for kind in KINDS},
        "seconds": round(time.perf_counter() - began, 1),
    }
    return say(line)


def main() -> int:
    arguments = study_options(__doc__, 100)
    arguments.add_argument("--strategy", default="ga")
    arguments.add_argument("--trials", type=int, default=100)
    arguments.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES))
    given = arguments.parse_args()
    with simulated() as run:
        rows = [row(run, n, given.studies, given.strategy, given.trials) for n in given.case]
    return conclude_rows("the main command, simulated", {"cases": rows}, rows, given.json)


if __name__ == "__main__":
    run_benchmark(main)
