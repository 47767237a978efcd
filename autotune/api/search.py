"""A search from beginning to end: started or continued, measured, and its result stored."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.figures import with_figure
from autotune.api.library_targets import chosen_spaces, searched_targets
from autotune.api.parameter_file import write_proven
from autotune.api.target import find_target, to_stderr
from autotune.errors import AutotuneError, UsageError
from autotune.notes import Note, Say
from autotune.space import Setting, Space
from autotune.store import OwnerProcess, Store, StudyRecord
from autotune.strategies import Strategy, find, resolve_options
from autotune.study.events import Watcher, silent
from autotune.study.other_library import OtherLibrary
from autotune.study.pipeline import (
    FinishedElsewhere,
    StudyContext,
    StudyRun,
)
from autotune.study.request import SearchRequest
from autotune.study.result import FINISHED, Result, follow_moved_study
from autotune.study.start_settings import start_hint, start_settings
from autotune.study.study_key import require_same_study
from autotune.study.study_request import StudyRequest, answer_of
from autotune.study.trial_store import history_of
from autotune.study.tried_layouts import TriedLayout, tried_layouts
from autotune.study.worker_request import WorkerRequest
from autotune.study.worker_trust import sign
from autotune.targets.target import Target
from autotune.wording import short_setting

if TYPE_CHECKING:
    from runner.trace import Features


class SearchInterrupted(KeyboardInterrupt):
    """The search was stopped by the user; ``result`` is the result so far, which is stored."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


@dataclass
class Search:
    """The part of one process in a search.

    ``target``, ``space`` and ``strategy``, if given, replace those that the request names; with
    several MPI libraries only the objective of ``target`` counts.  ``join``: other workers may take
    part.  ``of`` is the hash of the study that this worker was started for.  Raises UsageError if
    the request is wrong.
    """

    asked: SearchRequest
    store: Store
    join: bool = False
    of: str | None = None
    watch: Watcher = silent
    say: Say = to_stderr
    target: Target | None = None
    space: Space | None = None
    strategy: type[Strategy] | None = None
    writes_unasked: bool = True
    """Whether a proven setting's file is written to this directory if the request names no path."""
    _context: StudyContext = field(init=False, repr=False)

    def __post_init__(self) -> None:
        figure = with_figure(self.asked.target, self.store, self.say, guard=self.asked.guard)
        self.asked = asked = self.asked.model_copy(update={"target": figure})
        plan = asked.plan
        strategy = self.strategy or find(asked.strategy)
        options = resolve_options(strategy, asked.options, asked.preset)
        target, space, others = self._place()
        predicted = (
            () if asked.features is None else self._predicted(Path(asked.features), space, target)
        )
        request = StudyRequest(
            target=target,
            space=space,
            others=others,
            strategy=strategy,
            options=options,
            seed=asked.seed,
            plan=plan,
            guard=asked.guard,
            remeasure=asked.remeasure,
            join=self.join,
            watch=self.watch,
            priors=(*self._given(space, target), *predicted, *space.starts),
            fidelity=asked.fidelity,
        )
        if not (asked.features or asked.starts or others):
            request.suggest = lambda: self._suggested(space, target)
        self._context = StudyContext(request, self.store)
        if self.join:
            self._share()

    def _place(self) -> tuple[Target, Space, tuple[OtherLibrary, ...]]:
        """The target and space of the request, and its further MPI libraries."""
        asked = self.asked
        if not asked.libraries:
            target = self.target or find_target(asked.target, self.say)
            return target, self.space or target.space(asked.space), ()
        if self.space is not None:
            raise UsageError(
                "space= is a Space, which is for one MPI library; with several, give the name or "
                "file of a space",
                code="mpi.argument",
            )
        if asked.target.mpi is None:
            raise UsageError(
                "the first MPI library is missing; expected the name of each library",
                code="mpi.argument",
            )
        names = (asked.target.mpi, *asked.libraries)
        targets = searched_targets(asked.target, names, self.say)
        space, others = chosen_spaces(targets, asked.space)
        objective = None if self.target is None else self.target.objective
        return replace(targets[0], objective=objective), space, others

    @property
    def study(self) -> StudyRecord:
        """The study as it was when this process opened it."""
        return self._context.study

    @property
    def request(self) -> StudyRequest:
        """The request, with its names looked up."""
        return self._context.request

    def answer(self) -> Result | None:
        """The stored result, if the study has one that answers this request."""
        return self._context.finished()

    def followed_answer(self) -> Result | None:
        """As :meth:`answer`, for the study that is measured in place of this one."""
        return answer_of(
            follow_moved_study(self.store, self.store.get_study(self.study.id)), self.request.plan
        )

    def layouts(self, result: Result) -> list[TriedLayout]:
        """The layouts that the study of a result has tried, the fastest first."""
        study = self.store.find_study(result.study)
        target = self.request.target
        return tried_layouts(history_of(self.store, study.id), self.request.space, target.ranks)

    def run(self, around: AbstractContextManager[object] | None = None) -> Result | None:
        """Measure to the end and store the result; None if another worker runs the proof.

        ``around`` is entered while the search measures.  An interrupted search raises
        :class:`SearchInterrupted`; the same request continues it.  Raises WorkError and its kinds
        if the search fails.
        """
        study_run: StudyRun | None = None
        study = self.study.id
        try:
            with self._context as study_run, around or nullcontext():
                if self.answer() is not None:  # Finished while this waited.
                    raise FinishedElsewhere
                result = study_run.run()
                if self.writes_unasked or self.asked.params_file is not None:
                    write_proven(study_run, result, self.asked.params_file)
            self.store.set_result(study, result.status, result.to_json())
        except FinishedElsewhere:
            return self.answer()
        except KeyboardInterrupt:
            if study_run is None:
                raise
            so_far = study_run.result("you stopped it")
            self._stopped("interrupted", so_far)
            raise SearchInterrupted(so_far) from None
        except AutotuneError:
            if study_run is not None:
                self._stopped("failed", None)
            raise
        finally:
            self.store.release(study)
        return result

    def _share(self) -> None:
        """Let other workers of this user take part with the same request."""
        if self.of is not None:
            require_same_study(self.store, self.store.find_study(self.of), self.study)
        # A worker carries out what others asked for; what it asks itself, nobody wants.
        if self.of is None or self.study.request is None:
            paths = {
                name: str(Path(path).absolute())
                for name in ("features", "params_file")
                if (path := getattr(self.asked, name)) is not None
            }
            whole = self.asked.model_copy(update=paths)
            sign(self.store, self.study, WorkerRequest(whole, str(Path.cwd())))

    def _given(self, space: Space, target: Target) -> list[Setting]:
        """The settings that the user has the search try first."""
        if self.asked.starts:
            return start_settings(self.asked.starts, space, target, self.store, self.say)
        if self.of is None and (hint := start_hint(target, self.store)) is not None:
            self.say(hint)
        return []

    def _predicted(self, path: Path, space: Space, target: Target) -> tuple[Setting, ...]:
        """The warm start: predicted settings for the program of a features file."""
        from autotune.api.features import read_features

        return self._told(read_features(path), space, target, "")

    def _suggested(self, space: Space, target: Target) -> tuple[Setting, ...]:
        """The warm start where the database has a trace of the program; else nothing."""
        from autotune.api.features import stored_features

        known = stored_features(self.store, self.study.key)
        return () if known is None else self._told(known, space, target, " from a stored trace")

    def _told(
        self, features: Features, space: Space, target: Target, origin: str
    ) -> tuple[Setting, ...]:
        from autotune.api.predict import warm_start

        found = warm_start(features, space, target)
        words = "; ".join(short_setting(p.to_json()) for p in found) or "only the default"
        self.say(
            Note(
                "search.warm_start",
                f"warm start with predicted settings{origin}: {words}",
                {"settings": [p.to_json() for p in found]},
            )
        )
        return tuple(found)

    def _stopped(self, status: str, result: Result | None) -> None:
        """Store how a study stopped.  A worker that stops does not change the study while other
        workers go on, or if it is finished."""
        study = self.study.id
        if self.join:
            here = OwnerProcess.current()
            others = any(not w.is_lost and w.owner != here for w in self.store.workers(study))
            if others or self.store.get_study(study).status in FINISHED:
                return
        self.store.set_result(study, status, None if result is None else result.to_json())
