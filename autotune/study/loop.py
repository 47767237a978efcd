"""The search loop: ask, measure, tell, until the strategy, the trials or the budget end."""

from __future__ import annotations

import dataclasses
import statistics
import time

from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, BudgetSpent, SearchPlan
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import (
    DefaultMeasured,
    PhaseStarted,
    TrialEnded,
    Waiting,
    Watcher,
    silent,
)
from autotune.measurement.idle_parameters import TransportFacts, inactive_in, unused_parameters
from autotune.measurement.rank_layouts import PlacementWatch
from autotune.measurement.run_history import SEARCH
from autotune.space import DEFAULT, InactiveParameters, Setting, Space
from autotune.space.equal_layouts import EqualLayouts
from autotune.stats import noise_band
from autotune.stats.blocks import NEAREST
from autotune.store.model import PRUNED
from autotune.strategies import (
    DEFAULTS,
    EQUAL,
    INACTIVE,
    SCATTER,
    UNUSED,
    Observation,
    Proposal,
    Strategy,
    equal_layouts,
)
from autotune.study.screening import Screening
from autotune.study.search_result import BUDGET_GONE, BUDGET_SPENT, NOTHING_LEFT, NOTHING_NEW
from autotune.study.trial_store import (
    CHEAP,
    OthersFaster,
    Trial,
    TrialStore,
    best_ratio,
    best_trial,
)
from runner.types import RunRecord

ASK_RUNS = 20
ASK_LEAST_S = 20.0
"""A search ends if its strategy has looked for a new setting for the time of :data:`ASK_RUNS` runs,
and for at least these seconds."""
SPARES = 16
"""Settings that a worker would measure instead if others have just opened its proposal."""
POLL_S = 1.0
"""Seconds between two looks at the trials of other workers."""


class _NothingNew(Exception):
    """The strategy has looked for a new setting for too long."""


class SearchLoop:
    """Runs the search phase on an evaluator; ``ended_by`` says in words what ended it."""

    def __init__(
        self,
        evaluator: Evaluator,
        trial_store: TrialStore,
        strategy: Strategy,
        space: Space,
        plan: SearchPlan,
        watch: Watcher = silent,
        screening: Screening | None = None,
        warm: bool = False,
        placements: PlacementWatch | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.trial_store = trial_store
        self.strategy = strategy
        self.space = space
        self.plan = plan
        self.watch = watch
        self.screening = screening
        cheap = None if screening is None else screening.evaluator.history
        budget = Budget(evaluator.history, plan.budget_s, plan.max_runs, cheap)
        if screening is not None:
            screening.start(budget)
        evaluator.budget = budget
        self.bench = Bench(evaluator, plan, budget, watch, warm)
        self.ended_by = ""
        self.idle = InactiveParameters(space)
        self._placements = placements
        self._untold_layouts: list[EqualLayouts] = []
        """Equal layouts that no trial has yet."""
        self._asked_at = 0.0
        self._reported_trials: set[int] = set()
        self._running_trials: set[int] = set()
        """Numbers of trials of which the strategy knew while they ran."""
        self._told_default = False
        self._last_number = -1

    @property
    def favourite(self) -> Setting | None:
        """The setting with the strategy's best estimate, in the form that is launched."""
        proposal = self.strategy.favourite()
        if proposal is None:
            return None
        effective = self.idle.strip(proposal)
        has_run = any(t.effective == effective and t.state == "ok" for t in self.trial_store.trials)
        return effective if has_run and effective != DEFAULT else None

    def run(self) -> None:
        """Measure until the search ends.

        Raises WorkError if the default itself does not run, BudgetTooSmall if the budget does not
        hold one setting and its proof.
        """
        self._compare_placements()
        open_trials = self._news()
        self.watch(PhaseStarted("search", "searching", self.plan.trials))
        while True:
            if open_trials:
                trial = open_trials.pop(0)
            else:
                if self.trial_store.refresh() and (open_trials := self._news()):
                    continue
                if self._at_limit():
                    return
                retrial = None if self.screening is None else self.screening.given_back()
                try:
                    proposal = self._ask() if retrial is None else Proposal(retrial)
                except _NothingNew:
                    self.ended_by = NOTHING_NEW
                    return
                if proposal is None:
                    self.ended_by = NOTHING_LEFT
                    return
                try:
                    trial = self._open(proposal)
                except OthersFaster:
                    continue  # The strategy knows its proposals and is asked for another one.
            try:
                self._measure(trial)
            except BudgetSpent:
                self.ended_by = BUDGET_GONE
                return  # The trial stays open, and a larger budget begins with it.
            self.strategy.tell(self._observation(trial))

    def _open(self, proposal: Proposal) -> Trial:
        """The trial of a proposal, or of one of its spares if other workers were faster."""
        attrs = dict(proposal.attrs)
        trial = self.trial_store.open(proposal.setting, attrs, proposal.spares)
        if trial.setting != proposal.setting:
            self.strategy.add_running(trial.observation())
        return trial

    def _compare_placements(self) -> None:
        """Tell the strategy of equal layouts before its first proposal.

        What the first trial has is told again, so that a continued search goes on as it began.
        """
        if self._placements is None:
            return
        equal = [e for t in self.trial_store.trials for e in equal_layouts(t.attrs)]
        answers = [e for e in equal if e.resources == DEFAULT][:1]
        if not answers and (answer := self._placements.asked()):
            answers = self._untold_layouts = [answer]
        for one in answers:
            self.idle.learn_layouts(one)
            self._placements.know(one)
        if answers:
            self.strategy.learn_equal({EQUAL: [one.to_json() for one in answers]})

    def _ask(self) -> Proposal | None:
        """The strategy's next proposal; raises _NothingNew if it looks for one for too long."""
        self._asked_at = time.monotonic()
        self.strategy.pulse = self._pulse
        self.strategy.spares = SPARES if self.trial_store.shared else 0
        return self.strategy.ask()

    def _pulse(self) -> None:
        """End a proposal that takes many times as long as a run: the machine waits for it."""
        wait_s = time.monotonic() - self._asked_at
        if wait_s > max(ASK_RUNS * self.bench.budget.cost_s(1), ASK_LEAST_S):
            raise _NothingNew

    def _news(self) -> list[Trial]:
        """Tell the strategy of trials it does not know; returns those that this process must run.

        These were begun before it was interrupted, or by a worker that is gone.
        """
        fresh = [t for t in self.trial_store.trials if t.number not in self._reported_trials]
        running = [t for t in fresh if t.state == "running"]
        for trial in fresh:
            idle_names = trial.attrs.get(INACTIVE)
            if isinstance(idle_names, list):
                self.idle.learn(map(str, idle_names), trial.setting)
            for equal in equal_layouts(trial.attrs):
                self.idle.learn_layouts(equal)
                if self._placements is not None:
                    self._placements.know(equal)
        self.strategy.restore([self._observation(t) for t in fresh if t.state != "running"])
        for trial in running:
            if trial.number not in self._running_trials:
                self._running_trials.add(trial.number)
                self.strategy.add_running(trial.observation())
        return [t for t in running if not t.is_foreign]

    def _observation(self, trial: Trial) -> Observation:
        """An ended trial as the strategy is told of it, once.

        With one worker, trials end in the order of their numbers. With several workers they do not,
        and a strategy that needs this order would have to start again all the time. So the order in
        which this worker learns of them counts there.
        """
        self._reported_trials.add(trial.number)
        self._last_number = max(self._last_number + 1, trial.number)
        return dataclasses.replace(trial.observation(), number=self._last_number)

    def wait_for_others(self) -> None:
        """Wait until no other worker measures a trial; trials of dead workers are measured here."""
        while True:
            if self.trial_store.refresh():
                for trial in self._news():
                    try:
                        self._measure(trial)
                    except BudgetSpent:
                        return
                    self.strategy.tell(self._observation(trial))
            if not self.trial_store.busy:
                return
            self.watch(Waiting("waiting for the other workers' trials"))
            time.sleep(POLL_S)

    def _at_limit(self) -> bool:
        plan = self.plan
        if plan.trials is not None and len(self.trial_store.trials) >= plan.trials:
            self.ended_by = f"{plan.trials} trials done"
            return True
        if not self.bench.budget.affords(plan.race_least + self.bench.kept_runs):
            self.ended_by = BUDGET_SPENT
            return True
        return False

    def _measure(self, trial: Trial) -> None:
        self._learn_idle(trial)
        result = self._result_without_run(trial)
        if result is None:
            self.bench.ensure_defaults()
            self._tell_of_default()
            self._learn_idle(trial)
            result = self._result_without_run(trial)
        if result is not None:
            trial.estimate, trial.state, trial.reused = result[0], result[1], True
        elif self.screening is None or not self.screening.screens_out(trial):
            self._run_setting(trial)
        variance, freedom = self.evaluator.history.default_scatter()
        trial.attrs[SCATTER] = [round(variance, 8), freedom]
        self.trial_store.close(trial)
        best = best_trial(self.trial_store.trials)
        self.watch(
            TrialEnded(
                trial.number,
                trial.setting,
                trial.state,
                trial.estimate,
                best.estimate if best else None,
                best.effective if best else None,
                trial.reused,
                self._band(best) if best else None,
            )
        )

    def _tell_of_default(self) -> None:
        """Report the default's time and what a run costs, once."""
        records = self.evaluator.history.default_records()
        if self._told_default or not records:
            return
        self._told_default = True
        values = tuple(record.value_s for record in records)
        self.watch(DefaultMeasured(values, self.bench.budget.cost_s(1)))

    def _band(self, trial: Trial) -> tuple[float, float] | None:
        """The interval that the noise of single runs gives the trial's ratio."""
        history = self.evaluator.history
        runs = sum(e.trial == trial.number and e.record.valid for e in history.entries)
        around = min(2 * NEAREST, len(history.default_values()))
        return noise_band(trial.estimate or 1.0, *history.default_scatter(), runs, around)

    def _result_without_run(self, trial: Trial) -> tuple[float | None, str] | None:
        """The result of the effective setting if it is known without a run."""
        if trial.effective == DEFAULT:
            return 1.0, "ok"
        same = [
            other
            for other in self.trial_store.trials
            if other is not trial
            and other.state != "running"
            and other.effective == trial.effective
        ]
        for other in sorted(same, key=lambda other: not other.has_result):
            if other.has_result:
                return other.estimate, other.state
            if self.screening is not None and not self.screening.over:
                trial.attrs[CHEAP] = other.attrs.get(CHEAP)
                return None, PRUNED
        ratio = self.trial_store.known_ratio(trial.effective)
        return None if ratio is None else (ratio, "ok")

    def _run_setting(self, trial: Trial) -> None:
        """Make one run, and more while the setting looks better than the best, against luck."""
        ratios: list[float] = []
        most = self.plan.promising_runs if self._may_repeat() else 1
        while len(ratios) < most:
            self.bench.run_default_if_due()
            entry = self.evaluator.run(
                trial.effective,
                SEARCH,
                trial=trial.number,
                block=len(ratios),
                timeout_s=self.bench.limit_s(best_ratio(self.trial_store.trials)),
            )
            self._learn_inactive(entry.record, trial)
            ratio = self.evaluator.history.ratio(entry)
            if not entry.record.valid or ratio is None:
                trial.state = "censored" if entry.censored and ratio is not None else "failed"
                trial.estimate = ratio if trial.state == "censored" else None
                trial.reason = entry.record.reason
                return
            ratios.append(ratio)
            trial.estimate = statistics.median(ratios)
            bar = min(best_ratio(self.trial_store.trials), 1 - self.plan.min_gain)
            if trial.estimate >= bar:
                break
        trial.state = "ok"

    def _may_repeat(self) -> bool:
        """Whether the strategy wants a repetition and half of the race's allowance is left.

        The allowance must not be used up before the race.
        """
        if not self.strategy.repeats:
            return False
        entries = [e for e in self.evaluator.history.entries if e.kind == SEARCH and e.counts]
        repetitions = len(entries) - len({e.trial for e in entries})
        return 2 * repetitions < self.plan.extra_runs(len(self.trial_store.trials))

    def _learn_idle(self, trial: Trial) -> None:
        """Leave out parameters of collectives that the program was not seen to call, and those
        that do nothing under the transport in force."""
        transport = TransportFacts.of(self.space, self.evaluator.history.default_records())
        idle_names = unused_parameters(self.space, self.evaluator.history) | transport.idle.keys()
        if fresh := self.idle.learn_everywhere(idle_names):
            trial.attrs[UNUSED] = sorted(fresh)
        defaults = {n: v for n, v in transport.defaults.items() if self.idle.learn_default(n, v)}
        if defaults:
            trial.attrs[DEFAULTS] = defaults
        if self._placements is not None:
            equal = self._placements.asked(trial.setting)
            self._tell_layouts([*self._untold_layouts, *([equal] if equal else [])], trial)
            self._untold_layouts = []
        trial.effective = self.idle.strip(trial.setting)

    def _tell_layouts(self, equal: list[EqualLayouts], trial: Trial) -> None:
        """Record equal layouts, and with a trial, from which the strategy learns them."""
        for one in equal:
            self.idle.learn_layouts(one)
        if equal:
            trial.attrs[EQUAL] = [
                *(one.to_json() for one in equal_layouts(trial.attrs)),
                *(one.to_json() for one in equal),
            ]

    def _learn_inactive(self, record: RunRecord, trial: Trial) -> None:
        """Record the inactive parameters of a run, so that they are not launched again, and its
        layout if another placement has the same.

        The former holds for the run's conditions; under others, their components may be opened.
        """
        if self._placements is not None:
            equal = self._placements.seen(trial.effective, record)
            self._tell_layouts([equal] if equal else [], trial)
        if idle := inactive_in(record, trial.effective):
            self.idle.learn(idle, trial.effective)
            trial.attrs[INACTIVE] = sorted(idle)
            trial.effective = self.idle.strip(trial.effective)
