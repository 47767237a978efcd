"""The pipeline: one study from beginning to end, as a request and on any evaluator.

Everything is decided from the run history and the trials. So the same command continues an
interrupted study, and a larger budget extends a finished one. Nothing is launched here: the
evaluator does it (:mod:`autotune.study.evaluator`).

The last part is the procedure on any evaluator: search, select, prove in rounds, prune, choose.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType

from autotune.space import DEFAULT, Setting, Space
from autotune.space.trust import check_values
from autotune.stats import NoBlocks
from autotune.store import OwnerProcess, Store, StudyKey
from autotune.store.keys import SCREENING
from autotune.store.model import NEW
from autotune.strategies import Strategy
from autotune.study.budget import BudgetSpent, SearchPlan
from autotune.study.conclusion import (
    best_seen,
    contradictions,
    count_runs,
    finalist_rows,
    judge_status,
    name_recommendation,
    round_rows,
    sharing_warnings,
    study_warnings,
)
from autotune.study.confirmation import Blocks, Confirmation, confirm_blocks, order_seed
from autotune.study.evaluator import Evaluator, MachineEvaluator
from autotune.study.events import Event, Waiting, Watcher, silent
from autotune.study.executables import stored_executables, unseen_notes
from autotune.study.next_step import search_step
from autotune.study.operations import remarks_on
from autotune.study.recommendation import REFUTED, Recommender, StudyOutcome, ranked_winners
from autotune.study.result import (
    FINISH,
    SESSION,
    Result,
)
from autotune.study.result_checks import result_checks
from autotune.study.rounds import Round, Rounds
from autotune.study.screening import Screening
from autotune.study.screening_summary import LINK, stored_summary
from autotune.study.search import POLL_S, SearchPhase
from autotune.study.searched_space import allowed_starts, searched_space
from autotune.study.selection import Selection
from autotune.study.session import MEASURED, Session
from autotune.study.study_key import study_key
from autotune.study.study_request import StudyRequest, answer_of
from autotune.study.trial_store import StoredTrials, TrialStore, history_of
from autotune.study.unchecked import StoredAnswer, unchecked
from autotune.targets.provenance import provenance_of
from autotune.targets.target import Target
from runner.files.paths import is_file

WARM_START = "warm-start"
"""Document of a study: the settings that were suggested when it began."""


class StudyRun:
    """Runs one study in an open session; :class:`StudyContext` makes it."""

    def __init__(
        self,
        request: StudyRequest,
        session: Session,
        trial_store: StoredTrials,
        screening: Screening | None = None,
    ) -> None:
        self.request = request
        self.screening = screening
        self.study = session.study
        self.runner = session.runner
        self.evaluator = session.evaluator
        self.trial_store = trial_store
        self._session = session

    def run(self) -> Result:
        """Run or continue the study and return its result; raises as :func:`run_procedure`."""
        request = self.request
        self.evaluator.trial_ids = self.trial_store.ids
        self.evaluator.counts_calls = True
        launched_before = self._launched_s
        cheap = None if self.screening is None else self.screening.evaluator.history
        space, warm = searched_space(request, self.evaluator, cheap)
        priors = allowed_starts((*self._suggested(), *request.priors), request, space)
        strategy = request.strategy(
            space, seed=request.seed, priors=priors, options=request.options
        )
        answer = run_procedure(
            self.evaluator,
            self.trial_store,
            strategy,
            space,
            request.plan,
            order_seed(self.study.hash, request.seed),
            request.watch,
            may_finish=self._may_finish,
            screening=self.screening,
            warm=warm,
        )
        result = self.result(answer.search.ended_by)
        self._conclude(result, answer)
        launched_s = self._launched_s - launched_before
        result.overhead_s = max(result.overhead_s - launched_s, 0.0)
        return result

    def _suggested(self) -> tuple[Setting, ...]:
        """What was suggested when the study began; it stays, whatever is suggested later."""
        kept = self.trial_store.stored_document(WARM_START)
        if kept is None:
            if self.request.suggest is None or self.trial_store.trials:
                return ()
            settings = [setting.to_json() for setting in self.request.suggest()]
            kept = self.trial_store.store_document(WARM_START, {"settings": settings})
        found = tuple(Setting(one) for one in kept["settings"])
        # Others may write to the database.
        origin = f"the warm start of study {self.study.hash[:12]} in the results database"
        for setting in found:
            check_values(setting, origin, self.request.space)
        return found

    @property
    def _launched_s(self) -> float:
        """Wall seconds spent inside launches of either form."""
        cheap = 0.0 if self.screening is None else self.screening.evaluator.history.launched_s
        return self.evaluator.history.launched_s + cheap

    def _may_finish(self) -> bool:
        """Whether this worker makes the proofs."""
        request, store = self.request, self._session.store
        return not request.join or takes_finish(store, self.study.id, request.plan, request.watch)

    def result(self, ended_by: str) -> Result:
        """The parts of the result that do not depend on how the study ended."""
        target = self.request.target
        result = Result(
            status="interrupted",
            recommended=DEFAULT,
            study=self.study.hash[:12],
            mpi={"name": target.library.family, "version": target.library.version},
            machine=self.study.key.machine.hash[:12],
            cluster=target.cluster.name,
            app=target.app.name,
            ranks=target.ranks,
            strategy=self.request.strategy.name,
            seed=self.request.seed,
            guard=self.study.key.has_guard,
            ended_by=ended_by,
            trials=len(self.trial_store.trials),
            budget_s=self.request.plan.budget_s,
            max_runs=self.request.plan.max_runs,
            inherited=dict(self.study.key.inherited),
        )
        files = stored_executables(self._session.store, self.study.id)
        result.executables = [file.row for file in files]
        count_runs(result, self.evaluator.history)
        result.metric = self.evaluator.history.metric
        result.proposed_metric = self.evaluator.proposed_metric
        result.libraries = self.request.library_rows(self.evaluator.history)
        result.waiting_s = self.evaluator.waiting_s
        if self.screening is not None:
            assert isinstance(self.screening.evaluator, MachineEvaluator)
            result.waiting_s += self.screening.evaluator.waiting_s
            result.fidelity = stored_summary(self._session.store, self.study)
        result.wall_s = time.monotonic() - self._session.began
        result.overhead_s = max(result.wall_s - result.waiting_s, 0.0)
        return result

    def _conclude(self, result: Result, answer: StudyOutcome) -> None:
        target = self.request.target
        files = [file.path for file in stored_executables(self._session.store, self.study.id)]
        result.origin = provenance_of(target.program, target.cwd, target.stdin, files).to_json()
        best = answer.search.best
        history = self.evaluator.history
        result.best = best_seen(history, best.effective if best else None)
        result.status = judge_status(answer, history, result.guard)
        result.finalists = finalist_rows(answer)
        result.rounds = round_rows(answer, result.guard)
        result.drift_repeats = sum(proof.repeated for _, proof in answer.proofs)
        result.contradictions = contradictions(answer)
        result.comparisons = self._session.store.comparisons(self.study.id)
        vetoed = answer.vetoed[0].setting if answer.vetoed else DEFAULT
        result.checks = result_checks(target.app, history, answer.chosen or vetoed)
        result.unchecked = unchecked(
            StoredAnswer.of_key(self.study.key, (answer.chosen or DEFAULT).to_json())
        )
        result.warnings = [
            *sharing_warnings(target.ranks, target.cores),
            *unseen_notes(self._session.store, self.study.id, target),
            *remarks_on(self.request.space, history),
            *study_warnings(history, self.trial_store.trials, answer),
        ]
        if answer.recommendation is None:
            step = search_step(answer, self.request.plan, result.ended_by)
            if step is not None and result.status in ("inconclusive", "too_noisy"):
                result.next_step = step.row
            return
        if not result.guard:
            result.best = best_seen(history, answer.recommendation.setting)
            return
        name_recommendation(result, answer.recommendation)
        result.best = best_seen(history, result.recommended)
        result.mpirun = self.request.launch_line(result.recommended)
        result.warnings += target.preparation
        result.switch = self.request.switch(result.recommended, result.libraries)


class StudyContext:
    """A study in its session; a context manager whose entry waits for the machine."""

    def __init__(self, request: StudyRequest, store: Store) -> None:
        self.request = request
        self.store = store
        self._session = Session(
            store,
            self._key(request.target),
            request.target,
            request.space,
            self._watch,
            request.join,
            request.plan.budget_s,
            others=request.others,
        )
        self.study = self._session.study

    def _key(self, target: Target) -> StudyKey:
        request = self.request
        return study_key(
            target,
            request.space,
            Session.adapter(target),
            request.strategy.name,
            request.identity,
            request.seed,
            request.guard,
        )

    def _watch(self, event: Event) -> None:
        self.request.watch(event)

    def finished(self) -> Result | None:
        """The stored result of the study, if it answers this request; else None.

        More trials or more time than before, or a study that has not ended, need further runs.
        """
        done = answer_of(self.store.get_study(self.study.id), self.request.plan)
        if done is not None and done.recommended != DEFAULT:
            # Others may write to the database, so the text that users copy and run is made here.
            request = self.request
            origin = f"the result of study {self.study.hash[:12]} in the results database"
            check_values(done.recommended, origin, request.space)
            done.mpirun = request.launch_line(done.recommended)
            done.libraries = request.library_rows(history_of(self.store, self.study.id))
            done.switch = request.switch(done.recommended, done.libraries)
            done.mpirun_with_file = ""
            if done.params_file is not None and is_file(done.params_file):
                done.mpirun_with_file = request.launch_line(done.recommended, done.params_file)
        return done

    def __enter__(self) -> StudyRun:
        session = self._session.__enter__()
        self._store_session()

        def pull() -> None:
            session.evaluator.pull()

        trial_store = StoredTrials(
            self.store,
            self.study,
            self.request.space,
            reuse=not self.request.remeasure,
            shared=self.request.join,
            most=self.request.plan.trials,
            on_refresh=pull,
        )
        trial_store.load()
        screening = self._screening(session, trial_store) if self.request.fidelity else None
        return StudyRun(self.request, session, trial_store, screening)

    def _store_session(self) -> None:
        """Store the bounds of this session and its process, for those who watch the study."""
        plan = self.request.plan
        document = {
            "trials": plan.trials,
            "budget_s": plan.budget_s,
            "max_runs": plan.max_runs,
            "owner": dataclasses.asdict(OwnerProcess.current()),
        }
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.store.store_document(self.study.id, f"{SESSION}{stamp}:{os.getpid()}", document)

    def _screening(self, session: Session, trial_store: StoredTrials) -> Screening:
        """The screening of this study; its runs are in a study of their own."""
        request, of = self.request, self.study
        cheap = request.target.cheap()
        key = study_key(
            cheap,
            request.space,
            Session.adapter(cheap),
            SCREENING,
            {"of": of.hash},
            request.seed,
            request.guard,
        )
        study = self.store.study(key)
        if study.status == NEW:
            self.store.set_result(study.id, MEASURED, None)
        form = str(request.target.app.fidelity[request.target.input or ""])
        self.store.store_document(of.id, LINK, {"study": study.hash, "form": form})
        evaluator = session.evaluator_of(study, cheap, [o.cheap() for o in request.others])
        return Screening(evaluator, form, trial_store, request.plan, self._watch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, trace)


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


class FinishedElsewhere(Exception):
    """The search phase is over, and another worker makes the proofs."""


def run_procedure(
    evaluator: Evaluator,
    trial_store: TrialStore,
    strategy: Strategy,
    space: Space,
    plan: SearchPlan,
    seed: int,
    watch: Watcher = silent,
    may_finish: Callable[[], bool] = lambda: True,
    screening: Screening | None = None,
    warm: bool = False,
) -> StudyOutcome:
    """Run a study to its end, or continue it from its run history and trials.

    If other workers take part in the study, ``may_finish`` says whether this one makes the proofs.
    With ``screening``, cheap runs keep settings that show no gain from full runs. ``warm``: this
    process has warmed up already.

    ``seed``: of the orders of the blocks (:func:`~autotune.study.confirmation.order_seed`).

    Raises WorkError if the default does not run, MachineBusy if the guard rejects all runs,
    FinishedElsewhere if another worker makes the proofs.
    """
    search = SearchPhase(evaluator, trial_store, strategy, space, plan, watch, screening, warm)
    search.run()
    if not may_finish():
        raise FinishedElsewhere
    search.wait_for_others()
    return _Proofs(search, seed).carry_out()


class _Proofs:
    """The rounds of one study.

    Stored rounds are completed; a new round is made if there is something new to prove.
    """

    def __init__(self, search: SearchPhase, seed: int) -> None:
        self.search = search
        self.plan = search.plan
        self.seed = seed
        self.rounds = Rounds(search.trial_store, search.space, search.plan.alpha)
        self.recommender = Recommender(search, search.trial_store, seed)

    def carry_out(self) -> StudyOutcome:
        answer = StudyOutcome(self.search)
        for made in self.rounds.all():
            self._prove(made, answer)
        while (new := self._next(answer)) is not None:
            self._prove(new, answer)
        self._recommend(answer)
        return answer

    def _prove(self, made: Round, answer: StudyOutcome) -> None:
        evaluator = self.search.evaluator
        try:
            if not evaluator.history.blocks(made.phase):
                self.search.defaults.start()
            blocks = Blocks(evaluator, made.phase, made.settings, self.seed, made.limit_s)
            proof = confirm_blocks(blocks, made.plan, self.search.budget, self.search.watch)
        except (BudgetSpent, NoBlocks):
            answer.budget_ended = True
            return
        answer.proofs.append((made, proof))

    def _next(self, answer: StudyOutcome) -> Round | None:
        """The next round, stored; None if there is nothing to prove or the budget is spent."""
        if answer.budget_ended:
            return None
        try:
            return self._new(answer)
        except BudgetSpent:
            answer.budget_ended = True
            return None

    def _new(self, answer: StudyOutcome) -> Round | None:
        trials = len(self.search.trial_store.trials)
        if answer.proofs:
            last, proof = answer.proofs[-1]
            if proof.cut_short:
                return None  # A larger budget continues this round.
            if trials <= last.trials:
                return self._again(last, proof)
        standing = self._standing(answer)
        phase = f"prune:{self.rounds.next_name}:{trials}"
        ablated = {
            made.whole: made.settings[0]
            for made, proof in answer.proofs
            if made.whole is not None and made.settings[0] in proof.winners
        }
        chosen = Selection(
            self.search, self.seed, phase, _refuted(answer), standing, ablated
        ).choose()
        if not chosen.settings:
            return None
        return self._freeze(chosen.settings, chosen.slim, chosen.whole)

    def _again(self, last: Round, proof: Confirmation) -> Round | None:
        """A new proof of what was left undecided, if the budget is larger than before."""
        undecided = [s for s in proof.settings if proof.decisions[s].outcome == "undecided"]
        if proof.winners or not undecided or not self._grown(last):
            return None
        first = undecided[0] == last.settings[0]
        slim = [s for s in undecided if s in last.slim]
        return self._freeze(undecided, slim, last.whole if first else None)

    def _grown(self, last: Round) -> bool:
        """Whether the study may, and can, do more than when its last round was stored."""
        plan = self.plan
        more_s = last.budget_s is not None and (
            plan.budget_s is None or plan.budget_s > last.budget_s
        )
        more_runs = last.max_runs is not None and (
            plan.max_runs is None or plan.max_runs > last.max_runs
        )
        return (more_s or more_runs) and self.search.budget.affords(plan.proof_runs(1))

    def _freeze(self, settings: list[Setting], slim: list[Setting], whole: Setting | None) -> Round:
        return self.rounds.preregister(
            settings,
            min_gain=self.plan.min_gain,
            limit_s=self.search.proof_limit_s,
            slim=slim,
            whole=whole,
            trials=len(self.search.trial_store.trials),
            budget_s=self.plan.budget_s,
            max_runs=self.plan.max_runs,
        )

    def _standing(self, answer: StudyOutcome) -> Setting | None:
        """The setting that the rounds so far recommend."""
        found = ranked_winners(answer, self.plan.min_gain)
        return found[0][0] if found else None

    def _recommend(self, answer: StudyOutcome) -> None:
        for winner, made, proof in ranked_winners(answer, self.plan.min_gain):
            made_of = self.recommender.recommend(winner, made, proof)
            if not made_of.objections:
                answer.recommendation = made_of
                return
            answer.vetoed.append(made_of)


def _refuted(answer: StudyOutcome) -> set[Setting]:
    """Settings whose proof failed for another reason than a faster finalist."""
    return {
        setting
        for _, proof in answer.proofs
        if not proof.winners
        for setting, decision in proof.decisions.items()
        if decision.outcome in REFUTED
    } | {
        setting
        for _, proof in answer.proofs
        for setting, decision in proof.decisions.items()
        if decision.outcome in ("worse", "equivalent")
    }
