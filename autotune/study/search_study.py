"""A search study: opened, continued, and its result.

Everything is decided from the run history and the trials, so the same request continues an
interrupted study, and a larger budget extends a finished one.

The functions say whether a stored result answers a request, which worker makes the proofs, and
which part of the space is searched once it is known whether the program's operations commute.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from autotune.errors import AutotuneError, UsageError
from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, SearchPlan
from autotune.measurement.evaluator import Evaluator, MachineEvaluator
from autotune.measurement.events import Waiting, Watcher, silent
from autotune.measurement.measured_study import WITHOUT_RESULT, MeasuredStudy
from autotune.measurement.other_library import OtherLibrary
from autotune.measurement.rank_layouts import PlacementWatch
from autotune.measurement.reduction_operations import allows, first_kind, remarks_on
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.measurement.run_history import WARMUP, RunHistory, history_of
from autotune.measurement.study_executables import stored_executables, unseen_notes
from autotune.measurement.study_key import study_key
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Space
from autotune.space.commutativity import (
    commutative_levels,
    commutative_values,
    for_any_operation,
)
from autotune.space.library_choice import MPI
from autotune.space.outside_names import check_values
from autotune.store import OwnerProcess, Store, StudyKey, StudyRecord
from autotune.store.keys import OPERATIONS, OTHERS, SCREENING
from autotune.store.model import NEW
from autotune.strategies import Strategy, code_of
from autotune.strategies.candidates import LISTING_LIMIT
from autotune.strategies.models.sweeps import compiled
from autotune.study.conclusion import conclude, count_runs
from autotune.study.library_switch import library_rows, switch_to
from autotune.study.loop import POLL_S
from autotune.study.procedure import FinishedElsewhere, StudyOutcome, run_procedure
from autotune.study.proof import order_seed
from autotune.study.screening import Screening
from autotune.study.screening_summary import LINK, stored_summary
from autotune.study.search_result import (
    BUDGET_GONE,
    BUDGET_SPENT,
    NOTHING_LEFT,
    LibraryLaunches,
    Result,
    SwitchedLibrary,
)
from autotune.study.start_lines import set_start_lines
from autotune.study.study_request import SearchRequest
from autotune.study.study_status import FINISH, FINISHED, JOB_VARIABLE, SESSION
from autotune.study.study_warnings import sharing_warnings
from autotune.study.trial_store import StoredTrials
from autotune.targets.provenance import provenance_of
from autotune.targets.target import Target
from runner.mpi.discover import adapter

WARM_START = "warm-start"
"""Document of a study: the settings that were suggested when it began."""


class SearchInterrupted(KeyboardInterrupt):
    """The search was stopped by the user; ``result`` is the result so far, which is stored."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


class SearchStudy(MeasuredStudy):
    """The part of one process in a search whose names were looked up.

    ``space`` and ``others``, the further MPI libraries, are those that its settings can name.
    ``options`` are the strategy's, all of them. ``priors`` are settings to try first (the warm
    start), and part of the study's key. ``suggest`` gives more of them; it is asked once, when the
    study begins, so its answer is not part of the key. ``join``: other workers take part in the
    study, and one of them makes the proofs. ``at_end`` gets the study and its result before the
    machine is given back, and may add to the result. Raises UsageError for a space in which no
    parameter can vary here, and for cheap runs of an input without a cheap form.
    """

    def __init__(
        self,
        store: Store,
        request: SearchRequest,
        target: Target,
        space: Space,
        strategy: type[Strategy],
        options: Mapping[str, Any],
        *,
        others: Sequence[OtherLibrary] = (),
        priors: Sequence[Setting] = (),
        suggest: Callable[[StudyKey], Sequence[Setting]] | None = None,
        join: bool = False,
        watch: Watcher = silent,
        at_end: Callable[[SearchStudy, Result], None] = lambda study, result: None,
    ) -> None:
        cheap = target.cheap() if request.fidelity else None
        if len(space) == 0:
            absent = "".join(f"\n  {name}: {why}" for name, why in space.absent.items())
            raise UsageError(
                f"space {space.name} has no parameter that can vary with "
                f"{target.library.family} {target.library.version} on cluster "
                f"{target.cluster.name}; choose another (--space, autotune space list){absent}",
                code="space.nothing_varies",
            )
        self.request = request
        self.plan = request.plan
        self.strategy = strategy
        self.options = options
        self.priors = tuple(priors)
        # What decides the order of proposals, except the seed.
        identity = dict(options)
        if priors:
            identity["priors"] = [prior.key for prior in priors]
        if own := code_of(strategy):
            identity["code"] = own
        if cheap is not None:
            identity["fidelity"] = cheap.input
        if others:
            identity[OTHERS] = [
                {"name": o.name} | o.identity(target, strategy.name, request.guard) for o in others
            ]
        if commutative_levels(space):
            # Answers of studies that did not look at the operations are not answers of this one.
            identity[OPERATIONS] = "seen"
        key = study_key(target, space, strategy.name, identity, request.seed, request.guard)
        budget_s = self.plan.budget_s
        super().__init__(store, key, target, space, watch, join, budget_s, others=others)
        self.trials = StoredTrials(
            store,
            self.study,
            space,
            reuse=not request.remeasure,
            shared=join,
            most=self.plan.trials,
            on_refresh=lambda: self.evaluator.pull(),
        )
        self.screening: Screening | None = None
        self._cheap = cheap
        self._suggest = suggest
        self._at_end = at_end
        self._is_open = False

    def answer(self) -> Result | None:
        """The stored result of the study, if it answers the request; else None.

        More trials or more time than before, or a study that has not ended, need further runs.
        """
        result = answer_of(self.store.get_study(self.study.id), self.plan)
        if result is not None and result.recommended != DEFAULT:
            # Others may write to the database, so the text that users copy and run is made here.
            origin = f"the result of study {self.study.hash[:12]} in the results database"
            check_values(result.recommended, origin, self.space)
            result.mpirun = self.launch_line(result.recommended)
            result.libraries = self._library_rows(history_of(self.store, self.study.id))
            result.switch = self._switch(result)
            self.set_file_lines(result, result.recommended)
        return result

    def followed_answer(self) -> Result | None:
        """The stored result of the study that is measured in place of this one, as it is stored."""
        study = self.store.get_study(self.study.id)
        return answer_of(self.store.follow_moved(study), self.plan)

    def run(self, around: AbstractContextManager[object] | None = None) -> Result | None:
        """Measure to the end and store the result; None if another worker runs the proof.

        ``around`` is entered while the search measures. An interrupted search raises
        :class:`SearchInterrupted`; the same request continues it. Raises WorkError and its kinds
        if the search fails.
        """
        try:
            with self, around or nullcontext():
                if self.answer() is not None:  # Finished while this waited.
                    raise FinishedElsewhere
                result = self.measure()
                self._at_end(self, result)
            self.store.set_result(self.study.id, result.status, result.to_json())
        except FinishedElsewhere:
            return self.answer()
        except KeyboardInterrupt:
            if not self._is_open:
                raise
            so_far = self._begun_result("you stopped it")
            self._store_stop("interrupted", so_far)
            raise SearchInterrupted(so_far) from None
        except AutotuneError:
            if self._is_open:
                self._store_stop("failed", None)
            raise
        finally:
            self.store.release(self.study.id)
        return result

    def measure(self) -> Result:
        """Run or continue the study, which is open; raises as :func:`run_procedure`."""
        launched_before = self._launched_s
        cheap = None if self.screening is None else self.screening.evaluator.history
        space, warm = searched_space(self.space, self.plan, self.evaluator, self.watch, cheap)
        starts = (*self._suggestions(), *self.priors)
        priors = allowed_starts(starts, self.space, space, self.watch)
        seed = self.request.seed
        own_seed = self.store.own_seed(self.study.id, seed) if self.shared else seed
        strategy = self.strategy(space, seed=own_seed, priors=priors, options=self.options)
        if is_slowed(strategy):
            self.watch(_slow_proposals(strategy.name))
        answer = run_procedure(
            self.evaluator,
            self.trials,
            strategy,
            space,
            self.plan,
            order_seed(self.study.hash, seed),
            self.watch,
            may_finish=self._may_finish,
            screening=self.screening,
            warm=warm,
            placements=PlacementWatch.on(self.evaluator.runner, self.target, space),
        )
        result = self._begun_result(answer.ended_by)
        self._conclude(result, answer)
        launched_s = self._launched_s - launched_before
        result.overhead_s = max(result.overhead_s - launched_s, 0.0)
        return result

    def target_of(self, setting: Setting) -> Target:
        """The target under the library of a setting."""
        other = self._other(setting)
        return self.target if other is None else other.target

    def launch_line(self, setting: Setting, params_file: str | None = None) -> str:
        """The launch of a setting under its library, as a user would type it."""
        other, target = self._other(setting), self.target_of(setting)
        space = self.space if other is None else other.space
        bare = setting.without(MPI)
        return target.mpirun_line(adapter(target.library), space, bare, params_file)

    def set_file_lines(self, result: Result, setting: Setting) -> None:
        """Set the lines that start the program with the files of a setting."""
        set_start_lines(result, self.target_of(setting), partial(self.launch_line, setting))

    def __enter__(self) -> Self:
        super().__enter__()
        self._store_session()
        self.trials.load()
        self.evaluator.trial_ids = self.trials.ids
        self.evaluator.counts_calls = True
        if self._cheap is not None:
            self.screening = self._screening(self._cheap)
        self._is_open = True
        return self

    def _store_session(self) -> None:
        """Store the bounds of this process and its owner, for those who watch the study."""
        document = {
            "trials": self.plan.trials,
            "budget_s": self.plan.budget_s,
            "max_runs": self.plan.max_runs,
            "owner": dataclasses.asdict(OwnerProcess.current()),
            "job": os.environ.get(JOB_VARIABLE, ""),
        }
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.store.store_document(self.study.id, f"{SESSION}{stamp}:{os.getpid()}", document)

    def _screening(self, cheap: Target) -> Screening:
        """The screening of this study; its runs are in a study of their own."""
        request, of = self.request, self.study
        options = {"of": of.hash}
        key = study_key(cheap, self.space, SCREENING, options, request.seed, request.guard)
        study = self.store.study(key)
        if study.status == NEW:
            self.store.set_result(study.id, WITHOUT_RESULT, None)
        form = str(self.target.app.fidelity[self.target.input or ""])
        self.store.store_document(of.id, LINK, {"study": study.hash, "form": form})
        evaluator = self.evaluator_of(study, cheap, [o.cheap() for o in self.others])
        return Screening(evaluator, form, self.trials, self.plan, self.watch)

    def _suggestions(self) -> tuple[Setting, ...]:
        """What was suggested when the study began; it stays, whatever is suggested later."""
        document = self.trials.stored_document(WARM_START)
        if document is None:
            if self._suggest is None or self.trials.trials:
                return ()
            settings = [setting.to_json() for setting in self._suggest(self.study.key)]
            document = self.trials.store_document(WARM_START, {"settings": settings})
        suggestions = tuple(Setting(one) for one in document["settings"])
        # Others may write to the database.
        origin = f"the warm start of study {self.study.hash[:12]} in the results database"
        for setting in suggestions:
            check_values(setting, origin, self.space)
        return suggestions

    @property
    def _launched_s(self) -> float:
        """Wall seconds spent inside launches of either form."""
        cheap = 0.0 if self.screening is None else self.screening.evaluator.history.launched_s
        return self.evaluator.history.launched_s + cheap

    def _may_finish(self) -> bool:
        """Whether this worker makes the proofs."""
        return not self.shared or takes_finish(self.store, self.study.id, self.plan, self.watch)

    def _begun_result(self, ended_by: str) -> Result:
        """The parts of the result that do not depend on how the study ended."""
        target, history = self.target, self.evaluator.history
        result = Result(
            status="interrupted",
            recommended=DEFAULT,
            study=self.study.hash[:12],
            mpi={"name": target.library.family, "version": target.library.version},
            machine=self.study.key.machine.hash[:12],
            cluster=target.cluster.name,
            app=target.app.name,
            ranks=target.ranks,
            strategy=self.strategy.name,
            seed=self.request.seed,
            guard=self.study.key.has_guard,
            ended_by=ended_by,
            trials=len(self.trials.trials),
            budget_s=self.plan.budget_s,
            max_runs=self.plan.max_runs,
            inherited=dict(self.study.key.inherited),
        )
        files = stored_executables(self.store, self.study.id)
        result.executables = [file.row for file in files]
        count_runs(result, history)
        result.metric = history.metric
        result.proposed_metric = self.evaluator.proposed_metric
        result.libraries = self._library_rows(history)
        result.waiting_s = self.evaluator.waiting_s
        if self.screening is not None:
            assert isinstance(self.screening.evaluator, MachineEvaluator)
            result.waiting_s += self.screening.evaluator.waiting_s
            result.fidelity = stored_summary(self.store, self.study)
        result.wall_s = time.monotonic() - self.began
        result.overhead_s = max(result.wall_s - result.waiting_s, 0.0)
        return result

    def _conclude(self, result: Result, answer: StudyOutcome) -> None:
        """Add what the runs and the proof say, and what is known of program and machine."""
        target, history, study = self.target, self.evaluator.history, self.study
        files = [file.path for file in stored_executables(self.store, study.id)]
        result.origin = provenance_of(target.program, target.cwd, target.stdin, files).to_json()
        conclude(result, answer, history, self.trials.trials, target.app, self.plan)
        result.comparisons = self.store.comparisons(study.id)
        setting = (answer.setting or DEFAULT).to_json()
        result.unchecked = unchecked(StoredAnswer.of_key(study.key, setting))
        result.warnings = [
            *sharing_warnings(target.ranks, target.cores),
            *unseen_notes(self.store, study.id, target),
            *remarks_on(self.space, history),
            *result.warnings,
        ]
        if result.recommended != DEFAULT:
            result.mpirun = self.launch_line(result.recommended)
            result.warnings += target.preparation
            result.switch = self._switch(result)

    def _switch(self, result: Result) -> SwitchedLibrary | None:
        """What the library of the recommended setting needs; None for that of the default."""
        other = self._other(result.recommended)
        return None if other is None else switch_to(self.target, other, result.libraries)

    def _library_rows(self, history: RunHistory) -> list[LibraryLaunches]:
        """A row for each MPI library of the search; empty in a search under one."""
        if not self.others:
            return []
        targets = {DEFAULT.key: self.target} | {o.name: o.target for o in self.others}
        return library_rows(targets, history)

    def _other(self, setting: Setting) -> OtherLibrary | None:
        """The library that a setting names; None for that of the default."""
        return next((o for o in self.others if o.name == setting.get(MPI)), None)

    def _store_stop(self, status: str, result: Result | None) -> None:
        """Store how the study stopped. A worker that stops does not change the study while other
        workers go on, or if it is finished."""
        study = self.study.id
        if self.shared:
            this_process = OwnerProcess.current()
            others = any(
                not w.is_lost and w.owner != this_process for w in self.store.workers(study)
            )
            if others or self.store.get_study(study).status in FINISHED:
                return
        self.store.set_result(study, status, None if result is None else result.to_json())


def is_slowed(strategy: Strategy) -> bool:
    """Whether one of our strategies samples its model, and no compiler makes that fast."""
    samples_model = strategy.estimates and strategy.space.all_settings(LISTING_LIMIT) is None
    return samples_model and not code_of(type(strategy)) and compiled() is None


def _slow_proposals(strategy: str) -> Note:
    """The note on a strategy whose model is computed in Python, since nothing compiles it."""
    words = (
        f"the model of {strategy} is not compiled, since no working C compiler is found: each "
        "proposal takes about five times as long, and is the same.  Install gcc, or name a "
        "compiler in CC"
    )
    return Note("strategy.not_compiled", words, {"strategy": strategy})


def answer_of(study: StudyRecord, plan: SearchPlan) -> Result | None:
    """The stored result of a study, if it answers what ``plan`` requests; else None."""
    if study.result is None or study.status not in FINISHED:
        return None
    result = Result.from_json(study.result)
    more_trials = plan.trials is not None and plan.trials > result.trials
    more_time = plan.budget_s is not None and plan.budget_s > (result.budget_s or 0)
    more_runs = plan.max_runs is not None and plan.max_runs > (result.max_runs or 0)
    # With the same budget, more trials would find it spent again.
    has_bound = plan.budget_s is not None or plan.max_runs is not None
    more_trials = more_trials and not (has_bound and result.ended_by in (BUDGET_SPENT, BUDGET_GONE))
    if result.ended_by != NOTHING_LEFT and (more_trials or more_time or more_runs):
        return None
    return result


def takes_finish(store: Store, study_id: int, plan: SearchPlan, watch: Watcher) -> bool:
    """Whether this worker makes the proofs of a study: the first one whose search phase is over.

    If another one has that role, this one leaves as soon as that one is seen to live, or has ended.
    """
    while not store.take_role(study_id, FINISH):
        if store.is_role_active(study_id, FINISH):
            return False
        watch(Waiting("waiting for a sign of the worker that makes the proof"))
        time.sleep(POLL_S)
        if answer_of(store.get_study(study_id), plan) is not None:
            return False
    return True


def searched_space(
    space: Space,
    plan: SearchPlan,
    evaluator: Evaluator,
    watch: Watcher,
    cheap: RunHistory | None = None,
) -> tuple[Space, bool]:
    """The part of ``space`` that is searched, and whether a warm-up was made to know it.

    Levels that need operations which commute are in it only if the program has no others; the
    first warm-up of the study shows it. ``cheap`` is the history of cheap runs, which have a part
    of the budget. Raises UsageError if no parameter is left, and as
    :class:`~autotune.measurement.bench.Bench` if the default does not run.
    """
    history = evaluator.history
    if not commutative_levels(space):
        return space, False
    warm = first_kind(history) is None
    if warm:
        evaluator.budget = Budget(history, plan.budget_s, plan.max_runs, cheap)
        Bench(evaluator, plan, evaluator.budget).run_default(WARMUP)
    notes = remarks_on(space, history)
    for note in notes:
        watch(note)
    if allows(first_kind(history)):
        return space, warm
    left = for_any_operation(space)
    if len(left) == 0:
        raise UsageError(
            "; ".join(note.words for note in notes)
            + f".\nSpace {space.name} has nothing else; choose another (--space)",
            code="space.commutative",
        )
    return left, warm


def allowed_starts(
    starts: Iterable[Setting], space: Space, search_space: Space, watch: Watcher
) -> list[Setting]:
    """Those of the settings to try first that the ``search_space`` part of the space allows; the
    watcher is told of the others."""
    settings = []
    for start in starts:
        if search_space is space or not commutative_values(start):
            settings.append(start)
            continue
        words = f"not tried first, because it may give wrong results: {start.key}"
        watch(Note("operations.start", words, {"setting": start.to_json()}))
    return settings
