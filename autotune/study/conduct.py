"""One study from beginning to end: search, selection, pruning, confirmation, answer.

The only caller of the runner.  Everything is decided from the ledger and the trials, so the same
command continues an interrupted study, and a larger budget extends a finished one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.space.trust import check_values
from autotune.store import Store, Study, StudyKey
from autotune.strategies import Strategy, code_of, stored_options
from autotune.study.book import StoreBook
from autotune.study.choice import as_begun
from autotune.study.events import Event, Watcher, silent
from autotune.study.identity import study_key
from autotune.study.next_step import search_step
from autotune.study.origin import origin_of
from autotune.study.plan import SearchPlan
from autotune.study.procedure import carry_out
from autotune.study.recommendation import Answer
from autotune.study.result import (
    Result,
    best_seen,
    count_runs,
    finalist_rows,
    judge_status,
    name_recommendation,
    round_rows,
)
from autotune.study.search import BUDGET_GONE, BUDGET_SPENT, NOTHING_LEFT
from autotune.study.session import Session
from autotune.study.target import Target
from autotune.study.warnings import study_warnings

FINISH = "finish"
"""The role of the worker that proves what all found."""
FINISHED = ("recommended", "keep_default", "inconclusive", "too_noisy", "unguarded")


@dataclass
class Request:
    """What the caller wants of one search study."""

    target: Target
    space: Space
    strategy: type[Strategy]
    options: dict[str, Any]
    seed: int
    plan: SearchPlan
    guard: bool = True
    remeasure: bool = False
    watch: Watcher = silent
    priors: tuple[Setting, ...] = ()
    """Settings to try first."""
    join: bool = False
    """Other workers take part in the study; one of them proves what all found."""

    def __post_init__(self) -> None:
        """Raises UsageError for a space of which nothing can vary here."""
        if len(self.space) == 0:
            absent = "".join(f"\n  {name}: {why}" for name, why in self.space.absent.items())
            raise UsageError(
                f"space {self.space.name} has no parameter that can vary with "
                f"{self.target.library.family} {self.target.library.version} on cluster "
                f"{self.target.cluster.name}; choose another (--space, autotune space "
                f"list){absent}"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the order of proposals, besides the seed: part of the study's key."""
        first = {"priors": [prior.key for prior in self.priors]} if self.priors else {}
        own = code_of(self.strategy)
        code = {"code": own} if own else {}
        return stored_options(self.strategy, self.options) | first | code


class Conductor:
    """Runs one study in an open session.  Made by :class:`Conducting`."""

    def __init__(self, request: Request, session: Session, book: StoreBook) -> None:
        self.request = request
        self.study = session.study
        self.runner = session.runner
        self.bench = session.bench
        self.book = book
        self._session = session

    def run(self) -> Result:
        request = self.request
        strategy = request.strategy(
            request.space, seed=request.seed, priors=request.priors, options=request.options
        )
        self.bench.trial_ids = self.book.ids
        self.bench.counts_calls = True
        launched_before = self.bench.ledger.launched_s
        answer = carry_out(
            self.bench,
            self.book,
            strategy,
            request.space,
            request.plan,
            request.seed,
            request.watch,
            may_finish=self._may_finish,
        )
        result = self.result(answer.search.ended_by)
        self._conclude(result, answer)
        result.launched_s = self.bench.ledger.launched_s - launched_before
        return result

    def _may_finish(self) -> bool:
        """Whether this worker proves: the first one whose search phase is over."""
        return not self.request.join or self._session.store.take_role(self.study.id, FINISH)

    def result(self, ended_by: str) -> Result:
        """The parts of the answer that do not depend on how the study ended."""
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
            guard=self.study.key.guarded,
            ended_by=ended_by,
            trials=len(self.book.trials),
            budget_s=self.request.plan.budget_s,
            max_runs=self.request.plan.max_runs,
            inherited=dict(self.study.key.inherited),
        )
        count_runs(result, self.bench.ledger)
        result.waiting_s = self.bench.waiting_s
        result.wall_s = time.monotonic() - self._session.began
        return result

    def _conclude(self, result: Result, answer: Answer) -> None:
        target = self.request.target
        result.origin = origin_of(target.program, target.cwd, target.stdin).to_json()
        best = answer.search.best
        ledger = self.bench.ledger
        result.best = best_seen(ledger, best.effective if best else None)
        result.status = judge_status(answer, ledger, result.guard)
        result.finalists = finalist_rows(answer)
        result.rounds = round_rows(answer, result.guard)
        result.drift_repeats = sum(proof.repeated for _, proof in answer.proofs)
        result.warnings = study_warnings(ledger, self.book.trials, answer)
        if answer.recommendation is None:
            step = search_step(answer, self.request.plan, result.ended_by)
            if step is not None and result.status in ("inconclusive", "too_noisy"):
                result.next_step = step.to_json()
            return
        if not result.guard:
            result.best = best_seen(ledger, answer.recommendation.setting)
            return
        name_recommendation(result, answer.recommendation)
        result.best = best_seen(ledger, result.recommended)
        result.mpirun = target.mpirun_line(
            self.runner.adapter, self.request.space, result.recommended
        )


class Conducting:
    """A conductor in its session.  Use as a context manager: entering waits for the machine."""

    def __init__(self, request: Request, store: Store) -> None:
        self.request = request
        self.store = store
        request.target = as_begun(request.target, store, self._key, self._watch)
        self._session = Session(
            store,
            self._key(request.target),
            request.target,
            request.space,
            self._watch,
            request.join,
            request.plan.budget_s,
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
        """The result stored by now, where the study has one that answers this request.

        More trials or time than were given before, or a study without an end, want more work.
        """
        done = answer_of(self.store.get_study(self.study.id), self.request.plan)
        if done is not None and done.recommended != DEFAULT:
            # Somebody else may write to the database: what is printed to be copied is made here.
            request = self.request
            origin = f"the result of study {self.study.hash[:12]} in the results database"
            check_values(done.recommended, origin, request.space)
            done.mpirun = request.target.mpirun_line(
                Session.adapter(request.target), request.space, done.recommended
            )
        return done

    def __enter__(self) -> Conductor:
        session = self._session.__enter__()

        def pull() -> None:
            session.bench.pull()

        book = StoreBook(
            self.store,
            self.study,
            self.request.space,
            reuse=not self.request.remeasure,
            shared=self.request.join,
            most=self.request.plan.trials,
            on_refresh=pull,
        )
        book.load()
        return Conductor(self.request, session, book)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, trace)


def answer_of(study: Study, plan: SearchPlan) -> Result | None:
    """The stored result of a study, where it answers what ``plan`` asks for."""
    if study.result is None or study.status not in FINISHED:
        return None
    done = Result.from_json(study.result)
    more_trials = plan.trials is not None and plan.trials > done.trials
    more_time = plan.budget_s is not None and plan.budget_s > (done.budget_s or 0)
    more_runs = plan.max_runs is not None and plan.max_runs > (done.max_runs or 0)
    # Under the same budget more trials would find it spent again.
    bounded = plan.budget_s is not None or plan.max_runs is not None
    more_trials = more_trials and not (bounded and done.ended_by in (BUDGET_SPENT, BUDGET_GONE))
    if done.ended_by != NOTHING_LEFT and (more_trials or more_time or more_runs):
        return None
    return done
