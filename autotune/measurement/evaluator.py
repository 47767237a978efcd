"""Evaluators: the interface between the decisions of a study and the machine.

:class:`MachineEvaluator` launches and stores runs. Tests and simulations use other evaluators; the
decisions do not depend on which one it is.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from autotune.errors import WorkError
from autotune.measurement.budget import Budget
from autotune.measurement.events import RunEnded, RunStarted, Waiting, Watcher, silent
from autotune.measurement.first_run import FirstRunWatch
from autotune.measurement.idle_parameters import CALLS, needs_call_counts, untuned_calls
from autotune.measurement.other_library import Side
from autotune.measurement.reduction_operations import known_of
from autotune.measurement.run_history import (
    DEFAULT_PHASE,
    REJECTION_PREFIX,
    WARMUP,
    HistoryEntry,
    RunHistory,
    entry_of,
)
from autotune.measurement.study_executables import ExecutableWatch, change_error
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Space
from autotune.space.library_choice import FIRST, MPI
from autotune.store import Store
from autotune.store.keys import OPERATIONS
from autotune.targets.executables import change_words
from autotune.targets.figures import figure_notes, output_notes, proposal_of
from autotune.targets.jobs import jobs_on, jobs_words, split_words
from autotune.targets.metric import judge_objective
from autotune.targets.rows import ProposedFigure
from autotune.targets.target import Target
from runner.guard import QuietWait, wait_quiet
from runner.launch import Runner
from runner.supervise import DeferredInterrupts
from runner.trace.run import run_with_counts
from runner.types import LaunchSpec, RunRecord

QUIET_S = (1.0, 0.25, 0.75, 0.5)
"""Seconds for which the machine must be quiet before a rejected run is repeated, used in turn.

They differ in length: if bursts come at regular times, one fixed length would start every run just
before the next burst.
"""

MAX_REJECTS = 20
"""Attempts in a row at a run that the guard rejects."""
MAX_WAITS = 4
"""Waits in a row in which the machine did not become quiet."""
PATIENCE_S = 15.0
"""Longest wait for a quiet machine."""
WARM_UPS = 3
"""Runs in a row that may compile code before one counts that does."""


@dataclass(frozen=True)
class RunPlace:
    """What is run, and where it stands in the run history."""

    setting: Setting
    phase: str
    trial: int | None = None
    block: int = 0
    position: int = 0


class QuietMachine(Protocol):
    """A function that waits for a quiet machine, as :func:`runner.guard.wait_quiet`."""

    def __call__(self, timeout_s: float, *, quiet_s: float) -> QuietWait: ...


class MachineBusy(WorkError):
    """Foreign load did not end: the study stops, and the same command continues it."""


class Evaluator(Protocol):
    """Runs a setting and records the run in ``history``.

    Nothing is started that ``budget`` does not hold.
    """

    history: RunHistory
    budget: Budget | None

    def run(
        self,
        setting: Setting,
        phase: str,
        *,
        trial: int | None = None,
        block: int = 0,
        position: int = 0,
        timeout_s: float | None = None,
    ) -> HistoryEntry:
        """Make one run that counts; rejected attempts are repeated inside.

        Raises MachineBusy, and BudgetSpent if an attempt may not be started.
        """
        ...


@dataclass
class MachineEvaluator:
    """Launches on this machine and stores each run before it is used.

    A setting that names its library (:data:`~autotune.space.library_choice.MPI`) is launched by
    that library's side in ``others``; all others by ``runner`` and ``target``.

    ``trial_ids`` maps trial numbers to the store's ids. A run that the guard rejects is repeated
    after a wait of at most ``PATIENCE_S`` seconds for a quiet machine. There are up to
    ``MAX_REJECTS`` attempts in a row if the foreign load comes in bursts, but only ``MAX_WAITS``
    waits in a row without a quiet machine. Then the default is run. If it is disturbed too, the
    machine is too busy (MachineBusy). If not, the setting itself makes other programs busy, and it
    fails.
    """

    runner: Runner
    store: Store
    study_id: int
    target: Target
    space: Space
    history: RunHistory
    budget: Budget | None = None
    trial_ids: dict[int, int] = field(default_factory=dict)
    watch: Watcher = silent
    waiting_s: float = 0.0
    quiet: QuietMachine = wait_quiet
    shared: bool = False
    """Whether other workers measure for the same study; all runs are then read from the store."""
    counts_calls: bool = False
    """Whether the warm-up counts the program's calls.

    A search can then leave out parameters of collectives that the program never calls.
    """
    sees_operations: bool = False
    """Whether every warm-up looks at the operations that the program creates, whatever the space.
    """
    others: Mapping[str, Side] = field(default_factory=dict)
    """The further libraries of the study, by the names that settings have for them."""
    _waited_in_vain: int = field(default=0, init=False)
    _figure_codes: set[str] = field(default_factory=set, init=False)
    """Codes of the notes on figures that were given."""
    proposed_metric: ProposedFigure | None = field(default=None, init=False)
    """The figure that the program prints, while the wall time counts."""
    _output_read: bool = field(default=False, init=False)
    _first: FirstRunWatch = field(init=False, repr=False)

    _executables: ExecutableWatch = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._first = FirstRunWatch(self.target, self.history, self.store, self.study_id)
        self._executables = ExecutableWatch(self.store, self.study_id)

    def run(
        self,
        setting: Setting,
        phase: str,
        *,
        trial: int | None = None,
        block: int = 0,
        position: int = 0,
        timeout_s: float | None = None,
    ) -> HistoryEntry:
        """Make one run that counts, as :meth:`Evaluator.run`."""
        spec = self._spec(setting, timeout_s)
        place = RunPlace(setting, phase, trial, block, position)
        for quiet_s in itertools.islice(itertools.cycle(QUIET_S), MAX_REJECTS):
            entry = self._launch_without_compiling(self._within_budget(spec), place)
            if entry.record.state != "foreign_load":
                self._waited_in_vain = 0
                return entry
            if self.budget is not None:
                self.budget.require()  # Without this the evaluator would wait for nothing.
            self._wait(entry.record, quiet_s)
            if self._waited_in_vain >= MAX_WAITS:
                break
        if setting == DEFAULT:
            raise MachineBusy(
                f"machine too busy: {self._disturbed_runs()} runs in a row were disturbed; the "
                f"last: {entry.record.reason}.\n{self._jobs_in_the_way()}Nothing is lost. Stop the "
                "other work, or wait; then the same command continues.",
                code="machine.busy",
            )
        # The default's run shows whether the machine or the setting is the cause; it raises
        # MachineBusy if it is the machine.
        self.run(DEFAULT, DEFAULT_PHASE)
        return self._launch(spec, place, given_up=True)

    def _launch_without_compiling(self, spec: LaunchSpec, place: RunPlace) -> HistoryEntry:
        """Make one launch in which the program compiles nothing.

        A run that compiles code, which later runs load, is slow once: it is kept as a warm-up, and
        repeated. If it was stopped at the limit of a search, the next run may take as long as any.
        """
        next_spec = spec
        for _ in range(WARM_UPS):
            entry = self._launch(next_spec, place, warms_up=True)
            if entry.phase == place.phase:
                return entry
            self.watch(
                Note(
                    "run.compiled", "The program compiled code, which is kept; its run is repeated."
                )
            )
            whole = self._spec(place.setting)
            next_spec = self._within_budget(whole) if entry.censored else spec
        return self._launch(spec, place)

    def side(self, setting: Setting) -> Side:
        """What launches a setting."""
        own = Side(self.runner, self.target, self.space)
        return self.others.get(str(setting.get(MPI, FIRST)), own)

    def _spec(self, setting: Setting, timeout_s: float | None = None) -> LaunchSpec:
        """The launch of a setting by its side."""
        side = self.side(setting)
        return side.target.spec(side.space, setting.without(MPI), timeout_s)

    def _within_budget(self, spec: LaunchSpec) -> LaunchSpec:
        """The launch, ended with the budget as long as the length of a run is not known.

        Later, the current run may end, because a run that is cut would look slow.
        """
        if self.budget is None:
            return spec
        self.budget.require()
        left = self.budget.left_s
        if left is None or self.history.default_records():
            return spec
        limits = [limit for limit in (spec.timeout_s, left) if limit is not None]
        return dataclasses.replace(spec, timeout_s=min(limits))

    def _jobs_in_the_way(self) -> str:
        """A line that names the other MPI jobs on the same CPUs; empty without any."""
        jobs = jobs_on(self.runner.judged_cpus)
        return (
            f"MPI jobs on the same CPUs: {jobs_words(jobs)}; {split_words(jobs)}\n" if jobs else ""
        )

    def _disturbed_runs(self) -> int:
        """Number of rejected runs since the last run that was not rejected."""
        newest = reversed(self.history.entries)
        return sum(1 for _ in itertools.takewhile(lambda e: e.rejected, newest))

    def _launch(
        self, spec: LaunchSpec, place: RunPlace, given_up: bool = False, warms_up: bool = False
    ) -> HistoryEntry:
        """Make one launch and store it.

        ``given_up``: a rejection counts against the setting. ``warms_up``: it is kept as a warm-up
        if the program compiled code.
        """
        setting = place.setting
        self.watch(RunStarted(setting, place.phase))
        with DeferredInterrupts() as interrupts:
            # A finished run is stored before anything may stop this process.
            self._first.before_run()
            record = self._run(spec, setting, place.phase)
            objective = self.target.objective
            refusal = None if objective is None else judge_objective(objective, record)
            if given_up and record.state == "foreign_load":
                record.state = "failed"
                record.reason = (
                    f"{REJECTION_PREFIX}, where the default is not; the last: {record.reason}"
                )
            if warms_up and record.has_compiled:
                place = RunPlace(setting, WARMUP)
            changes = self._executables.check(record, self.side(setting).target)
            if changes:
                record.state = "interrupted"
                record.reason = f"the program changed: {change_words(changes)}"
            entry = self._store_run(record, place)
            self._first.after_run(entry)
        if interrupts.count:
            raise KeyboardInterrupt
        if changes:
            raise change_error(changes)
        if refusal is not None:
            raise WorkError(
                f"{refusal}.\nThe run is stored: run {entry.order} of study "
                f"{self.store.get_study(self.study_id).hash[:12]}",
                code=refusal.code,
            ) from refusal
        self.watch(RunEnded(entry, setting, self.history.ratio(entry)))
        self._tell_of_figure(record)
        self._first.judge(entry)
        return entry

    def _run(self, spec: LaunchSpec, setting: Setting, phase: str) -> RunRecord:
        """Make one launch; a warm-up, whose time is not used, shows the program's calls."""
        side = self.side(setting)
        counts = self.counts_calls and setting == DEFAULT and needs_call_counts(self.space)
        if phase != WARMUP or not (counts or self.sees_operations):
            return side.runner.run(spec)
        if counts:
            spec = dataclasses.replace(spec, watch_windows=True)
        trace = run_with_counts(side.runner, spec)
        word = known_of(trace.commutes, side.target.commutative_only)
        record = trace.record
        record.extra = {**record.extra, OPERATIONS: word}
        if counts and trace.calls:
            record.extra[CALLS] = trace.calls
            if note := untuned_calls(self.space, trace.calls):
                self.watch(note)
        return record

    def _tell_of_figure(self, record: RunRecord) -> None:
        """Give the notes on the figure of a run, each kind once; what is printed is read once."""
        if self.target.objective is not None or not record.valid:
            return
        notes = figure_notes(record, self.target.app)
        if not self._output_read:
            self._output_read = True
            proposal = proposal_of(record, self.target.program)
            if proposal is not None and record.metric_s is None:
                self.proposed_metric = proposal.to_json()
            notes += output_notes(record, proposal, self.target.program)
        for note in notes:
            if note.code not in self._figure_codes:
                self._figure_codes.add(note.code)
                self.watch(note)

    def _wait(self, record: RunRecord, quiet_s: float) -> None:
        self.watch(Waiting(f"run rejected: {record.reason}; waiting until the machine is quiet"))
        began = time.monotonic()
        quiet = self.quiet(PATIENCE_S, quiet_s=quiet_s).quiet
        self._waited_in_vain = 0 if quiet else self._waited_in_vain + 1
        self.waiting_s += time.monotonic() - began

    def _store_run(self, record: RunRecord, place: RunPlace) -> HistoryEntry:
        setting, trial = place.setting, place.trial
        key = self.history.previous = setting.key
        order, phase = self.history.next_order, place.phase
        entry = HistoryEntry(order, key, phase, record, trial, place.block, place.position)
        run_id = self.store.add_run(
            self.study_id,
            None if trial is None else self.trial_ids[trial],
            phase=phase,
            block=place.block,
            position=place.position,
            record=record,
            setting_key=key,
            order=order,
            launched=self.side(setting).space.launched(setting.without(MPI)),
        )
        if not self.shared:
            self.history.add(entry)
            return entry
        return self.pull({run_id: record})[run_id]

    def pull(self, own: Mapping[int, RunRecord] | None = None) -> dict[int, HistoryEntry]:
        """Read the new runs of all workers; returns entries by the store's ids.

        The last lines of the output of others' runs are left out; ``own``: records of this
        process's runs, by the store's ids.
        """
        last = self.history.next_order - 1
        entries = {}
        for run in self.store.runs(self.study_id, after=last, output=False):
            entry = entry_of(run)
            if own and run.id in own:
                entry = dataclasses.replace(entry, record=own[run.id])
            entries[run.id] = entry
            self.history.add(entry)
        return entries
