"""Screening: cheap runs of a program keep settings that show no gain from full runs.

A cheap run is a run of the cheap form that the application's file declares for the input
(``[fidelity]``). Only ratios within one form are compared. Cheap runs decide which settings get
full runs, and nothing else: the race, the pruning and the proof see full runs only.

The first settings are run in both forms, and so is every fourth setting that cheap runs would
screen out. If the ranks of cheap and full runs disagree, or a setting without gain in cheap runs
has a clear one in full runs, screening ends for the rest of the study, and the settings that it
kept from full runs get them.

Cheap runs are stored in a study of their own, with the strategy :data:`SCREENING`
(:mod:`autotune.store.keys`), because they are runs of another input or other arguments.
"""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field

from autotune.errors import WorkError
from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, SearchPlan
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import Watcher, silent
from autotune.measurement.figure_time import covered_s, least_ratio
from autotune.measurement.run_history import DEFAULT_KEY, DEFAULT_PHASE, HistoryEntry
from autotune.notes import Note
from autotune.space import Setting
from autotune.stats.cheap_runs import DEFAULTS, Agreement, shows_no_gain
from autotune.store.model import PRUNED
from autotune.study.screening_summary import OFF, why_off
from autotune.study.trial_store import (
    CHEAP,
    Trial,
    TrialStore,
    both_forms,
    missed_gain,
    scatter_of,
)

CHEAP_PHASE = "screen"
"""The phase of a candidate's cheap runs."""
BOTH_FIRST = 8
"""Settings that are run in both forms before any is screened out."""
AUDIT = 4
"""Of this number of settings that show no gain, one is run in full all the same."""


@dataclass(frozen=True)
class Look:
    """What the cheap runs of a setting show; ``ratio`` is to the default's, None if they failed."""

    ratio: float | None
    no_gain: bool


@dataclass
class Screening:
    """Screens the settings of one search; ``evaluator`` runs the cheap form, ``form`` names it.

    Everything is decided from the stored runs and trials, so an interrupted study goes on as it
    would have.
    """

    evaluator: Evaluator
    form: str
    trial_store: TrialStore
    plan: SearchPlan
    watch: Watcher = silent
    _bench: Bench | None = field(default=None, init=False, repr=False)

    def start(self, budget: Budget) -> None:
        """Share the budget of the search, which counts cheap runs too."""
        self.evaluator.budget = budget
        self._bench = Bench(self.evaluator, self.plan, budget)

    def screens_out(self, trial: Trial) -> bool:
        """Whether the setting is kept from full runs; notes in the trial what was seen.

        Raises WorkError if the default does not run in the cheap form.
        """
        if self.over:
            return False
        first = len(both_forms(self.trial_store.trials)) < BOTH_FIRST
        look = self._look(trial.effective, 1 if first else 2)
        why_full = "first" if first else "audit" if look.no_gain and self._is_audit() else ""
        trial.attrs[CHEAP] = {"ratio": look.ratio, "no_gain": look.no_gain, "kept": why_full}
        if why_full or not look.no_gain:
            return False
        trial.state = PRUNED
        trial.reason = f"no gain over the default in cheap runs ({self.form})"
        return True

    @property
    def over(self) -> bool:
        """Whether screening has ended, because cheap and full runs disagree."""
        if self.trial_store.stored_document(OFF) is not None:
            return True
        trials = self.trial_store.trials
        pairs = both_forms(trials)
        if len(pairs) < BOTH_FIRST:
            return False
        scatter = scatter_of(trials)
        cheap_variance = self.evaluator.history.default_scatter()[0]
        agreement = Agreement.of(pairs, cheap_variance, scatter[0] if scatter else 0.0)
        hidden_gain = missed_gain(trials, self.plan.min_gain)
        if not agreement.is_refuted and hidden_gain is None:
            return False
        off = {**dataclasses.asdict(agreement), "missed_gain": hidden_gain}
        self.trial_store.store_document(OFF, off)
        self.watch(
            Note(
                "screening.off",
                f"Cheap runs ({self.form}) are not like full runs: {why_off(off)}. Screening "
                "ends; settings that it kept from full runs get them.",
                off,
            )
        )
        return True

    def given_back(self) -> Setting | None:
        """A setting to run in full because screening has ended, the most promising one first."""
        if not self.over:
            return None
        trials = self.trial_store.trials
        run = {t.setting for t in trials if t.state != PRUNED}
        candidates = [t for t in trials if t.state == PRUNED and t.setting not in run]
        return (
            min(candidates, key=lambda t: (t.cheap_ratio, t.number)).setting if candidates else None
        )

    def _is_audit(self) -> bool:
        """Whether the next setting that shows no gain is run in full all the same."""
        audits = sum(t.shows_no_gain for t in self.trial_store.trials if not t.reused)
        return audits % AUDIT == AUDIT - 1

    def _look(self, setting: Setting, most: int) -> Look:
        """Run a setting in the cheap form, up to ``most`` times, until it may have a gain.

        It takes two runs to show that it has none.
        """
        assert self._bench is not None
        try:
            self._bench.ensure_defaults(DEFAULTS)
            self._bench.run_default_if_due()
            runs: list[HistoryEntry] = []
            earlier_runs = self._runs_of(setting)
            no_gain = True
            while no_gain and len(runs) < most:
                if not earlier_runs and runs:
                    # A fresh default: a machine that has become slower must not count against the
                    # setting.
                    self._bench.run_default(DEFAULT_PHASE)
                run = earlier_runs.pop(0) if earlier_runs else self._run(setting)
                runs.append(run)
                no_gain = self._no_gain(run)
        except WorkError as problem:
            if type(problem) is not WorkError:
                raise  # The budget is spent, or the machine is busy.
            raise WorkError(
                f"in the cheap form ({self.form}): {problem}\nCorrect [fidelity] in the "
                "application's file, or leave out --fidelity.",
                code="fidelity.fails",
            ) from None
        history = self.evaluator.history
        ratios = [ratio for run in runs if (ratio := history.ratio(run)) is not None]
        return Look(statistics.median(ratios) if ratios else None, no_gain and len(runs) == 2)

    def _runs_of(self, setting: Setting) -> list[HistoryEntry]:
        """Stored cheap runs of a setting on this place, of a search that was interrupted."""
        history = self.evaluator.history
        return [
            e
            for e in history.entries
            if e.key == setting.key
            and e.phase == CHEAP_PHASE
            and e.counts
            and history.place in (None, e.record.place)
        ]

    def _run(self, setting: Setting) -> HistoryEntry:
        defaults = self.evaluator.history.default_records()
        longest = self.plan.run_limit_s(defaults, 1.0)
        return self.evaluator.run(setting, CHEAP_PHASE, timeout_s=longest)

    def _no_gain(self, run: HistoryEntry) -> bool:
        """Whether a run shows no gain over each of the default's last runs before it.

        A run that failed shows nothing: full runs show whether the setting works.
        """
        before = [
            e.record
            for e in self.evaluator.history.entries
            if e.key == DEFAULT_KEY
            and e.counts
            and e.record.valid
            and e.order < run.order
            and e.record.place == run.record.place
        ]
        record = run.record
        if not before or not (record.valid or run.censored):
            return False
        if record.valid:
            return shows_no_gain(record.value_s, [r.value_s for r in before], self.plan.min_gain)
        level_s = statistics.median(covered_s(r) for r in before)
        least = least_ratio(record, before, level_s)
        if least is None:
            return False
        return shows_no_gain(least * level_s, [covered_s(r) for r in before], self.plan.min_gain)
