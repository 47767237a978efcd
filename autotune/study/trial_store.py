"""Trials (a setting with its state and estimate), and the stores that hold them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from autotune.errors import WorkError
from autotune.measurement.run_history import SEARCH, RunHistory, entry_of, history_of
from autotune.measurement.study_executables import changed_executables
from autotune.space import DEFAULT, Setting, Space
from autotune.space.library_choice import MPI
from autotune.stats.cheap_runs import clear_step, rank_correlation
from autotune.store import OwnerProcess, Store, StudyRecord, TrialDraft
from autotune.store import TrialRecord as StoredTrial
from autotune.store.model import PRUNED
from autotune.strategies import SCATTER, Observation, Proposal


@dataclass
class Trial:
    """A setting with its state; ``estimate`` is T / T_default, None if there is none.

    ``effective`` is the setting without parameters whose component was not opened.
    """

    number: int
    setting: Setting
    effective: Setting
    state: str = "running"
    estimate: float | None = None
    reason: str = ""
    attrs: dict[str, object] = field(default_factory=dict)
    reused: bool = False
    is_foreign: bool = False
    """Whether another process measures the trial."""

    @property
    def has_result(self) -> bool:
        """Whether full runs, here or in another study, have shown how fast the setting is."""
        return self.state not in ("running", PRUNED)

    @property
    def cheap_ratio(self) -> float:
        """T / T_default in the cheap form; infinite if the cheap runs failed or there are none."""
        result = self.attrs.get(CHEAP)
        ratio = result.get("ratio") if isinstance(result, dict) else None
        return float(ratio) if isinstance(ratio, int | float) else math.inf

    @property
    def shows_no_gain(self) -> bool:
        """Whether the cheap runs showed no gain."""
        result = self.attrs.get(CHEAP)
        return isinstance(result, dict) and bool(result.get("no_gain"))

    def observation(self) -> Observation:
        estimate = self.estimate
        if self.state == PRUNED:
            # Half of the cheap log ratio: a cheap run teaches less than a full one. It is never
            # below 1, since only settings that show no gain have no full run.
            ratio = self.cheap_ratio
            estimate = max(ratio, 1.0) ** 0.5 if ratio < math.inf else 1.0
        return Observation(self.number, self.setting, estimate, self.state, self.attrs)


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """The trial with the smallest ratio, without the default; None if there is none."""
    candidates = [t for t in trials if t.state == "ok" and t.effective != DEFAULT]
    return min(candidates, key=lambda t: (t.estimate or 1.0, t.number), default=None)


def best_ratio(trials: Iterable[Trial]) -> float:
    """T / T_default of the best trial; 1 if there is none."""
    best = best_trial(trials)
    return (best.estimate or 1.0) if best else 1.0


class DocumentStore(Protocol):
    """Stores JSON documents of a study by name; the first document of a name stays."""

    def store_document(self, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Store ``document`` if the name is new; returns the stored document."""
        ...

    def stored_document(self, name: str) -> dict[str, Any] | None:
        """The document of this name; None if there is none."""
        ...


class TrialStore(DocumentStore, Protocol):
    """Stores trials, and the plans of rounds."""

    trials: list[Trial]
    shared: bool
    """Whether other workers open trials of the same study at the same time."""

    def open(
        self, setting: Setting, attrs: dict[str, object], spares: Sequence[Proposal] = ()
    ) -> Trial:
        """A new trial of the setting, or of the first of ``spares`` that no worker has opened."""
        ...

    def close(self, trial: Trial) -> None: ...

    @property
    def busy(self) -> bool:
        """Whether another worker still measures a trial."""
        ...

    def refresh(self) -> bool:
        """Read the trials of other workers; returns whether there were any changes."""
        ...

    def known_ratio(self, setting: Setting) -> float | None:
        """The ratio that an earlier study measured for this setting under the same conditions."""
        ...


class OthersFaster(Exception):
    """Another worker has opened this trial, or the last one allowed; ask for another setting."""


CHEAP = "cheap"
"""Key in a trial's attributes for what its cheap runs have shown."""


EFFECTIVE = "effective"
REUSED = "reused"


@dataclass
class StoredTrials:
    """Trials in memory and in the store; ``reuse``: use ratios that other studies measured."""

    store: Store
    study: StudyRecord
    space: Space
    reuse: bool = True
    shared: bool = False
    """Whether other workers open trials of the same study at the same time."""
    most: int | None = None
    """Number of trials that all workers together may open."""
    on_refresh: Callable[[], object] = lambda: None
    """Called before trials are read again, so that their runs are read before them."""
    trials: list[Trial] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)
    mine: set[int] = field(default_factory=set)
    """Numbers of the trials that this process opened or took over."""
    _places: dict[int, int] = field(default_factory=dict)
    """Where each trial is in ``trials``, by its number."""
    _next: int = 0
    """The first number that is not known."""
    _running: set[int] = field(default_factory=set)
    """Numbers of the trials that ran when they were last read."""
    _histories: dict[int, RunHistory] = field(default_factory=dict)
    _current: dict[int, bool] = field(default_factory=dict)

    def load(self) -> None:
        """Read the stored trials; those of dead processes become this one's, to be repeated.

        Trials that another living process measures stay its own. Raises WorkError for a trial whose
        setting is not on the space's grid, since others may write to a database.
        """
        self.mine = {row.number for row in self.store.recover(self.study.id)}
        self.trials, self._places, self._next, self._running = [], {}, 0, set()
        self._take(self.store.trials(self.study.id))

    def _take(self, rows: Iterable[StoredTrial]) -> bool:
        """Take over what was read, and return whether it is news."""
        is_news, this_process = False, OwnerProcess.current()
        for row in rows:
            own = row.number in self.mine and row.owner == this_process
            is_foreign = row.state == "running" and not own
            place = self._places.get(row.number)
            former = None if place is None else self.trials[place]
            if former is not None and (former.state, former.is_foreign) == (row.state, is_foreign):
                continue
            trial = trial_of(row)
            self._refuse_strange(trial)
            trial.is_foreign = is_foreign
            self._add(trial, row.id)
            is_news = True
        return is_news

    def _add(self, trial: Trial, trial_id: int) -> None:
        """Add a trial in the order of the numbers, or replace what was known of it."""
        number = trial.number
        self.ids[number] = trial_id
        (self._running.add if trial.state == "running" else self._running.discard)(number)
        place = self._places.get(number)
        if place is not None:
            self.trials[place] = trial
            return
        is_last = not self.trials or self.trials[-1].number < number
        self.trials.append(trial)
        if not is_last:
            self.trials.sort(key=lambda t: t.number)
            self._places = {t.number: at for at, t in enumerate(self.trials)}
        else:
            self._places[number] = len(self.trials) - 1
        while self._next in self._places:
            self._next += 1

    def _refuse_strange(self, trial: Trial) -> None:
        """Raise WorkError for a trial whose setting is not on this space's grid.

        Stored settings are launched, and every strategy proposes settings on the grid only.
        """
        for setting in (trial.setting, trial.effective):
            for name, value in setting.items():
                parameter = name in self.space and self.space[name]
                wrong = (
                    parameter.problem(parameter.normalise(value))
                    if parameter
                    else "is not in its space"
                )
                if wrong:
                    raise WorkError(
                        f"trial {trial.number} of study {self.study.hash[:12]} in the results "
                        f"database was not proposed by its strategy: {name} = {value!r:.80} "
                        f"{wrong}.  Nothing of it was run.  Somebody else writes to this database: "
                        "use another one (--store)",
                        code="study.damaged",
                    )

    def refresh(self) -> bool:
        """Read the trials of other workers, and take over those of workers that are gone.

        A process that does not share its study has others only where one of another host left a
        trial running.
        """
        if not self.shared and not self.busy:
            return False
        self.on_refresh()
        running = [self.ids[number] for number in self._running]
        rows, may_recover = self.store.trial_news(self.study.id, self._next, running)
        is_news = self._take(rows)
        if may_recover:
            lost_trials = self.store.recover(self.study.id, is_restart=False)
            self.mine |= {row.number for row in lost_trials}
            is_news |= self._take(lost_trials)
        return is_news

    @property
    def busy(self) -> bool:
        """Whether another worker still measures a trial."""
        return any(t.state == "running" and t.is_foreign for t in self.trials)

    def open(
        self, setting: Setting, attrs: dict[str, object], spares: Sequence[Proposal] = ()
    ) -> Trial:
        if self.shared:
            drafts = [TrialDraft(p.setting.to_json(), p.setting.key, p.attrs) for p in spares]
            claim = self.store.claim_trial(
                self.study.id, setting.to_json(), setting.key, attrs, self.most, spares=drafts
            )
            if claim is None:
                raise OthersFaster
            row = claim
            if row.key != setting.key:
                spare = next(p for p in spares if p.setting.key == row.key)
                setting, attrs = spare.setting, spare.attrs
        else:
            row = self.store.add_trial(self.study.id, setting.to_json(), setting.key, attrs)
        trial = Trial(row.number, setting, setting, attrs=dict(attrs))
        self.mine.add(row.number)
        self._add(trial, row.id)
        return trial

    def close(self, trial: Trial) -> None:
        self._running.discard(trial.number)
        trial.attrs[EFFECTIVE] = trial.effective.key
        if trial.reused:
            trial.attrs[REUSED] = True
        self.store.finish_trial(
            self.ids[trial.number], trial.state, trial.estimate, trial.attrs, trial.reason
        )

    def known_ratio(self, setting: Setting) -> float | None:
        """Median ratio that other studies under the same conditions measured while searching.

        The conditions are those of the first library; nothing is taken over for another one.
        """
        if not self.reuse or MPI in setting:
            return None
        runs = self.store.known_runs(
            self.study.context,
            setting.key,
            other_than=self.study.id,
            launched=self.space.launched(setting),
        )
        ratios = [
            ratio
            for run in runs
            if run.phase == SEARCH
            and run.record.valid
            and self._is_current(run.study_id)
            and (ratio := self._history(run.study_id).ratio(entry_of(run))) is not None
        ]
        return statistics.median(ratios) if ratios else None

    def store_document(self, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Store a plan in the study's row; the first plan of a name stays."""
        return self.store.store_document(self.study.id, name, document)

    def stored_document(self, name: str) -> dict[str, Any] | None:
        """The plan of this name; None if there is none."""
        return self.store.stored_document(self.study.id, name)

    def _is_current(self, study_id: int) -> bool:
        """Whether another study ran the executables as they are now, as far as that is known."""
        if study_id not in self._current:
            self._current[study_id] = not changed_executables(self.store, study_id)
        return self._current[study_id]

    def _history(self, study_id: int) -> RunHistory:
        if study_id not in self._histories:
            self._histories[study_id] = history_of(self.store, study_id)
        return self._histories[study_id]


def trial_of(row: StoredTrial) -> Trial:
    """A stored trial as a trial of the study."""
    setting = Setting(row.setting)
    effective = row.attrs.get(EFFECTIVE)
    differs = isinstance(effective, str) and effective != row.key
    return Trial(
        number=row.number,
        setting=setting,
        effective=Setting.parse(str(effective)) if differs else setting,
        state=row.state,
        estimate=row.estimate,
        reason=row.reason,
        attrs=dict(row.attrs),
        reused=bool(row.attrs.get(REUSED)),
    )


def both_forms(trials: Sequence[Trial]) -> list[tuple[float, float]]:
    """Cheap and full ratio of each setting that was run in both forms; infinite if it failed."""
    return [
        (t.cheap_ratio, math.inf if t.estimate is None else t.estimate)
        for t in trials
        if CHEAP in t.attrs and t.has_result and not t.reused
    ]


def agreement(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The rank correlation of cheap and full ratios; None for less than two settings."""
    if len(pairs) < 2:
        return None
    return rank_correlation([cheap for cheap, _ in pairs], [full for _, full in pairs])


def missed_gain(trials: Sequence[Trial], min_gain: float) -> float | None:
    """The largest clear gain in full runs of a setting that shows none in cheap runs.

    A gain is clear if it is above ``min_gain`` by more than the scatter of the default explains
    (Student's t, one in a thousand). None if there is none, or if the scatter is not known yet.
    """
    scatter = scatter_of(trials)
    if scatter is None:
        return None
    bar = -math.log1p(min_gain) - clear_step(*scatter)
    ratios = [
        t.estimate
        for t in trials
        if t.state == "ok" and not t.reused and t.estimate is not None and t.shows_no_gain
    ]
    best = min(ratios, default=1.0)
    return 1 / best - 1 if math.log(best) < bar else None


def scatter_of(trials: Sequence[Trial]) -> tuple[float, int] | None:
    """Variance of one log time of the default in full runs, and its degrees of freedom."""
    scatters = [s for t in trials if isinstance(s := t.attrs.get(SCATTER), list | tuple)]
    if not scatters or len(scatters[-1]) != 2:
        return None
    variance, freedom = scatters[-1]
    return (float(variance), int(freedom)) if freedom >= 1 else None
