"""The trials of a study, kept in the results database."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from autotune.space import Setting, Space
from autotune.store import Store, StoredRun, Study
from autotune.store import Trial as StoredTrial
from autotune.study.ledger import SEARCH, Entry, Ledger
from autotune.study.search import Trial

EFFECTIVE = "effective"
REUSED = "reused"


def entry_of(run: StoredRun) -> Entry:
    """A stored run in the ledger's form."""
    return Entry(
        run.order,
        run.setting_key,
        run.phase,
        run.record,
        run.trial,
        run.block or 0,
        run.position or 0,
    )


def ledger_of(store: Store, study_id: int) -> Ledger:
    """All runs of a stored study."""
    return Ledger.of(entry_of(run) for run in store.runs(study_id))


@dataclass
class StoreBook:
    """Trials in memory and in the store; ``reuse`` looks for ratios that other studies measured."""

    store: Store
    study: Study
    space: Space
    reuse: bool = True
    trials: list[Trial] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)
    _ledgers: dict[int, Ledger] = field(default_factory=dict)

    def load(self) -> None:
        """Take over what is stored; trials of dead processes become this one's, to be repeated.

        Trials that another living process measures stay its own.
        """
        mine = {stored.number for stored in self.store.recover(self.study.id)}
        self.trials = []
        for stored in self.store.trials(self.study.id):
            self.ids[stored.number] = stored.id
            trial = trial_of(stored)
            trial.elsewhere = trial.state == "running" and trial.number not in mine
            self.trials.append(trial)

    def open(self, setting: Setting, attrs: dict[str, object], origin: str) -> Trial:
        stored = self.store.add_trial(
            self.study.id, setting.to_json(), setting.key, attrs, origin=origin
        )
        trial = Trial(stored.number, setting, setting, attrs=dict(attrs))
        self.ids[stored.number] = stored.id
        self.trials.append(trial)
        return trial

    def close(self, trial: Trial) -> None:
        trial.attrs[EFFECTIVE] = trial.effective.key
        if trial.reused:
            trial.attrs[REUSED] = True
        self.store.finish_trial(
            self.ids[trial.number], trial.state, trial.estimate, trial.attrs, trial.reason
        )

    def known(self, setting: Setting) -> float | None:
        """Median ratio that other studies under the same conditions measured while searching."""
        if not self.reuse:
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
            and (ratio := self._ledger(run.study_id).ratio(entry_of(run))) is not None
        ]
        return statistics.median(ratios) if ratios else None

    def _ledger(self, study_id: int) -> Ledger:
        if study_id not in self._ledgers:
            self._ledgers[study_id] = ledger_of(self.store, study_id)
        return self._ledgers[study_id]


def trial_of(stored: StoredTrial) -> Trial:
    """A stored trial in the study's form."""
    setting = Setting(stored.setting)
    effective = stored.attrs.get(EFFECTIVE)
    return Trial(
        number=stored.number,
        setting=setting,
        effective=Setting.parse(effective) if isinstance(effective, str) else setting,
        state=stored.state,
        estimate=stored.estimate,
        reason=stored.reason,
        attrs=dict(stored.attrs),
        reused=bool(stored.attrs.get(REUSED)),
    )
