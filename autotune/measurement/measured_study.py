"""A study that is measured: its place in the database, the machine lock, the runner, the evaluator.

A heartbeat renews the leases of its process, so that its trials are not taken for lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from autotune.errors import AutotuneError
from autotune.measurement.budget import BudgetSpent
from autotune.measurement.evaluator import MachineEvaluator
from autotune.measurement.events import Waiting, Watcher, silent
from autotune.measurement.other_library import OtherLibrary, Side, sides_of
from autotune.measurement.run_history import history_of
from autotune.measurement.study_executables import current_key
from autotune.notes import lock_notes
from autotune.space import Space
from autotune.store import Store, StudyKey, StudyRecord
from autotune.store.leases import BEAT_S
from autotune.targets.layout import replaced_note
from autotune.targets.target import Target, limit_note
from runner.cpus import cpu_list
from runner.guard import wait_quiet
from runner.lock import MachineLock

WITHOUT_RESULT = "measured"
"""The status of a study that has runs and no result."""


class MeasuredStudy:
    """A study in one process; a context manager whose entry waits for the machine.

    ``evaluator`` exists from then on; its run history has what earlier sessions measured. The key
    says whether the guard is on. ``others``: the further libraries under which settings may run.
    """

    def __init__(
        self,
        store: Store,
        key: StudyKey,
        target: Target,
        space: Space,
        watch: Watcher = silent,
        shared: bool = False,
        budget_s: float | None = None,
        others: Sequence[OtherLibrary] = (),
    ) -> None:
        self.others = tuple(others)
        self.shared = shared
        self.budget_s = budget_s
        self.store = store
        target.refuse_store_inside(store.url.database)
        self.study = store.study(current_key(store, key, watch))
        self.target = target
        self.space = space
        self.watch = watch
        self.began = time.monotonic()
        self.runner = target.runner(key.has_guard)
        cpus = target.cluster.cpu_set
        self._lock = MachineLock("exclusive", tell=lock_notes(watch), cpus=cpus)
        self._heartbeat = Heartbeat(store, self.study.id)
        self._sides: Mapping[str, Side] = {}
        self._runners = ExitStack()
        self.evaluator: MachineEvaluator

    def _report_reserve(self) -> None:
        """Warn of hardware threads that share a core with the chosen ones."""
        cpus = self.target.cluster.cpu_set or frozenset()
        others = (self.runner.judged_cpus or frozenset()) - cpus
        if others:
            self.watch(
                Waiting(
                    f"cpus = {cpu_list(cpus)} uses part of some cores: the CPUs {cpu_list(others)} "
                    "share them, are reserved too and stay idle"
                )
            )

    def _say_terms(self) -> None:
        """Say how long a run may take, if the command line does not; and whose threads count."""
        if self.target.timeout_s is None:
            self.watch(limit_note(self.target, self.budget_s))
        if note := replaced_note(self.space):
            self.watch(note)

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self._say_terms()
        if self.shared:
            self.store.enroll(self.study.id, is_waiting=True)
        self._heartbeat.start()
        try:
            self._lock.__enter__()
        except BaseException:
            self._heartbeat.stop()
            raise
        lock_wait_s = time.monotonic() - self.began
        self._report_reserve()
        try:
            with ExitStack() as runners:
                runners.enter_context(self.runner)
                has_guard = self.study.key.has_guard
                self._sides = runners.enter_context(sides_of(self.others, has_guard))
                self._runners = runners.pop_all()
        except BaseException:
            self._heartbeat.stop()
            self._lock.__exit__(None, None, None)
            raise
        for note in self.target.shared_notes(self._lock):
            self.watch(note)
        self.evaluator = self.evaluator_of(self.study, self.target)
        self.evaluator.waiting_s = lock_wait_s
        if self.shared:
            self.store.enroll(self.study.id)
        return self

    def evaluator_of(
        self, study: StudyRecord, target: Target, others: Sequence[OtherLibrary] | None = None
    ) -> MachineEvaluator:
        """An evaluator that stores the runs of a target in a study, with its earlier runs.

        ``others``: the targets of the other libraries, if not those of this study.
        """
        sides = dict(self._sides)
        history = history_of(self.store, study.id, self.runner.place, brief=False)
        for other in others or ():
            sides[other.name] = replace(sides[other.name], target=other.target)
        return MachineEvaluator(
            self.runner,
            self.store,
            study.id,
            target,
            self.space,
            history,
            watch=self.watch,
            shared=self.shared,
            quiet=partial(wait_quiet, cpus=self.runner.judged_cpus),
            others=sides,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._heartbeat.stop()
        try:
            self._runners.__exit__(kind, error, trace)
            self._note_end(error)
        finally:
            self._lock.__exit__(kind, error, trace)

    def _note_end(self, error: BaseException | None) -> None:
        """Store how this process ended, for a study that has no result."""
        if self.shared or self.store.get_study(self.study.id).result is not None:
            return
        status = WITHOUT_RESULT
        if error is not None:
            is_interruption = not isinstance(error, AutotuneError) or isinstance(error, BudgetSpent)
            status = "interrupted" if is_interruption else "failed"
        self.store.set_result(self.study.id, status, None)


class Heartbeat:
    """Renews the leases of this process in one study until it is stopped.

    It also looks at the leases of others, and whether the database is still in its place. If a
    database does not answer, it is asked again; if the lease or the database is lost by then, the
    next statement of the study itself finds out.
    """

    def __init__(self, store: Store, study_id: int, every_s: float = BEAT_S) -> None:
        self._store, self._study_id, self._every_s = store, study_id, every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            try:
                self._store.check_place()
                self._store.beat(self._study_id)
            except AutotuneError:
                continue
