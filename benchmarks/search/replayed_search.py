"""One search over one landscape, with the real search phase and race of a study."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from autotune.measurement.budget import SearchPlan
from autotune.measurement.events import Event, TrialEnded
from autotune.space import DEFAULT, Setting
from autotune.store.model import PRUNED
from autotune.strategies import Observation, Proposal, Strategy
from autotune.strategies.random_search import RandomSearch
from autotune.study.limited import Limited
from autotune.study.loop import SearchLoop
from autotune.study.procedure import run_procedure
from autotune.study.race import Race, RaceEvidence, race_evidence, with_favourite
from autotune.study.screening import Screening
from autotune.study.simulation import MemoryTrialStore, Model, SimulatedEvaluator
from benchmarks.search.landscapes import Land
from benchmarks.search.peers import Peer

MARKS = (10, 15, 25, 45, 100, 150)
_BEYOND = 100.0
_REPEATED = 60
"""Number of known settings in a row after which the search of a peer counts as stuck."""


@dataclass
class ReplayedSearch:
    """The course of one search: which setting it would name after each number of runs.

    ``named`` has (search runs, machine seconds, setting). ``own_s`` are the strategy's own seconds
    per trial, ``ended`` the search runs after which it stopped by itself (None: it did not).
    ``screened`` settings were screened out by cheap runs, unless screening was ``switched_off``.
    """

    land: Land
    named: list[tuple[int, float, Setting]] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)
    ended: int | None = None
    screened: int = 0
    switched_off: bool = False

    def at(self, runs: int) -> Setting:
        """The setting that would be named if the search were stopped after so many search runs."""
        before = [setting for spent, _, setting in self.named if spent <= runs]
        return before[-1] if before else DEFAULT

    def at_second(self, seconds: float) -> Setting:
        """The setting that would be named after so many machine seconds."""
        before = [setting for _, spent, setting in self.named if spent <= seconds]
        return before[-1] if before else DEFAULT

    def seconds_to(self, share: float) -> float:
        """Machine seconds until the search reaches this share and stays above it; else inf."""
        reached = math.inf
        for _, seconds, setting in self.named:
            enough = self.land.share(setting) >= share
            reached = min(reached, seconds) if enough else math.inf
        return reached


class Timed(Limited):
    """A strategy with limited runs that is timed, and stopped if it repeats known settings."""

    def __init__(
        self, strategy: Strategy, spent: Callable[[], int], course: ReplayedSearch, runs: int
    ) -> None:
        super().__init__(strategy, runs, spent)
        self._course = course
        self._repeated: dict[Setting, None] = {}
        self._stuck = 0

    def ask(self) -> Proposal | None:
        """The next setting; None if the runs are used up, or the strategy ended or is stuck."""
        if self._stuck >= _REPEATED:
            return None
        began = time.perf_counter()
        proposal = super().ask()
        self._course.own_s.append(time.perf_counter() - began)
        if proposal is None:
            self._course.own_s.pop()
            if self.spent() < self._runs:
                self._course.ended = self.spent()
            return None
        known = proposal.setting in self._repeated
        self._repeated[proposal.setting] = None
        self._stuck = self._stuck + 1 if known else 0
        return proposal

    def tell(self, observation: Observation) -> None:
        began = time.perf_counter()
        super().tell(observation)
        self._course.own_s[-1] += time.perf_counter() - began


def follow(
    land: Land, strategy: Strategy, seed: int, runs: int, cheap: Land | None = None
) -> ReplayedSearch:
    """Search ``land`` for so many search runs, with the plan that studies have by default.

    ``cheap`` is a cheap form of the landscape, whose runs screen the settings and count by their
    share of the time.

    A matched peer names its own recommendation, any other contestant what a study would prove.
    """
    course = ReplayedSearch(land)
    evaluator = SimulatedEvaluator(_model(land), np.random.default_rng([31, seed]))
    trial_store = MemoryTrialStore()
    plan = SearchPlan(trials=None)
    screening = None
    if cheap is not None:
        cheap_runs = SimulatedEvaluator(_model(cheap), np.random.default_rng([34, seed]))
        screening = Screening(cheap_runs, cheap.name, trial_store, plan)

    def note(event: Event | None = None) -> None:
        if event is None or isinstance(event, TrialEnded):
            known = race_evidence(evaluator.history.entries, trial_store.trials)
            named = _named(strategy, known, search.favourite, plan.min_gain)
            own = sum(course.own_s)
            course.named.append((spent(), search.bench.budget.spent_s + own, named))

    def spent() -> int:
        return math.ceil(search.bench.budget.spent_runs)

    limited = Timed(strategy, spent, course, runs)
    search = SearchLoop(
        evaluator,
        trial_store,
        limited,  # type: ignore[arg-type]
        land.space,
        plan,
        note,
        screening,
    )
    search.run()
    if screening is not None:
        course.screened = sum(t.state == PRUNED for t in trial_store.trials)
        course.switched_off = screening.over
    if course.ended is not None:
        Race(search.bench, trial_store.trials).run()
        note()
    return course


def _named(
    strategy: Strategy, known: RaceEvidence, favourite: Setting | None, min_gain: float
) -> Setting:
    """A matched peer's own recommendation; of any other what a study would take into its proof.

    ``favourite`` is that of the strategy, in the form that is launched.
    """
    if isinstance(strategy, Peer) and strategy.trials is not None:
        return strategy.recommendation() or DEFAULT
    hopeful = with_favourite(known.finalists(1, min_gain), favourite)
    return hopeful[0] if hopeful else DEFAULT


def at_budgets(land: Land, told: Callable[[int], Strategy], seed: int, runs: int) -> ReplayedSearch:
    """One search for each number of runs in :data:`MARKS`, by a strategy that was told of it.

    The course has what each names at its end; its seconds are those of this search alone.
    """
    course = ReplayedSearch(land)
    for budget in (mark for mark in MARKS if mark <= runs):
        one = follow(land, told(budget), seed, budget)
        seconds = max((s for _, s, _ in one.named), default=0.0)
        course.named.append((budget, seconds, one.at(budget)))
        course.own_s += one.own_s
    return course


def proposals_within(land: Land, seed: int, runs: int) -> int:
    """How many settings are tried within so many search runs, if none is run twice at once."""
    strategy = RandomSearch(land.space, seed=seed)
    strategy.repeats = False
    return max(len(follow(land, strategy, seed, runs).own_s), 1)


def prove(land: Land, strategy: Strategy, seed: int, trials: int) -> Setting | None:
    """The recommendation of a whole study of so many trials, after its proof; None: the default."""
    evaluator = SimulatedEvaluator(_model(land), np.random.default_rng([32, seed]))
    plan = SearchPlan(trials=trials)
    return run_procedure(evaluator, MemoryTrialStore(), strategy, land.space, plan, seed).setting


def _model(land: Land) -> Model:
    def seconds(setting: Setting, rng: np.random.Generator) -> float | str:
        ratio, state = land.draw(setting, rng)
        if state == "censored":
            # The recorded run was stopped, so it is stopped here too, whatever the limit is.
            return land.default_s * max(ratio, 1.0) * _BEYOND
        return ratio * land.default_s if state == "ok" else "failed"

    return seconds
