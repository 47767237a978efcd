"""The beginning of a search: the names of its request looked up, and its study opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.figures import with_figure
from autotune.api.library_targets import chosen_spaces, searched_targets
from autotune.api.parameter_file import write_proven
from autotune.api.target import find_target, to_stderr
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.space import Setting, Space
from autotune.store import Store, StudyKey
from autotune.strategies import Strategy, find, resolve_options
from autotune.study.events import Watcher, silent
from autotune.study.other_library import OtherLibrary
from autotune.study.request import SearchRequest
from autotune.study.result import Result
from autotune.study.search import SearchStudy
from autotune.study.start_settings import start_hint, start_settings
from autotune.study.study_key import require_same_study
from autotune.study.worker_request import WorkerRequest
from autotune.study.worker_trust import sign
from autotune.targets.target import Target
from autotune.wording import short_setting

if TYPE_CHECKING:
    from runner.trace import Features


def begin_search(
    request: SearchRequest,
    store: Store,
    *,
    join: bool = False,
    of: str | None = None,
    watch: Watcher = silent,
    say: Say = to_stderr,
    target: Target | None = None,
    space: Space | None = None,
    strategy: type[Strategy] | None = None,
    writes_unasked: bool = True,
) -> SearchStudy:
    """The study of a request, begun or continued; nothing is measured yet.

    ``target``, ``space`` and ``strategy``, if given, replace those that the request names; with
    several MPI libraries only the objective of ``target`` counts. ``join``: other workers may take
    part. ``of`` is the hash of the study that this worker was started for. ``writes_unasked``: the
    file of a proven setting is written to this directory if the request names no path. Raises
    UsageError if the request is wrong.
    """
    figure = with_figure(request.target, store, say, guard=request.guard)
    request = request.model_copy(update={"target": figure})
    _ = request.plan  # What is wrong in it is said before anything is looked up.
    strategy = strategy or find(request.strategy)
    options = resolve_options(strategy, request.options, request.preset)
    target, space, others = _place(request, target, space, say)
    predicted: Sequence[Setting] = ()
    if request.features is not None:
        from autotune.api.features import read_features

        predicted = _predicted(read_features(Path(request.features)), space, target, say, "")
    starts = _starts(request, of, space, target, store, say)

    def suggest(key: StudyKey) -> Sequence[Setting]:
        """The warm start where the database has a trace of the program; else nothing."""
        from autotune.api.features import stored_features

        known = stored_features(store, key)
        if known is None:
            return ()
        return _predicted(known, space, target, say, " from a stored trace")

    def write(study: SearchStudy, result: Result) -> None:
        if writes_unasked or request.params_file is not None:
            write_proven(study, result, request.params_file)

    study = SearchStudy(
        store,
        request,
        target,
        space,
        strategy,
        options,
        others=others,
        priors=(*starts, *predicted, *space.starts),
        suggest=None if request.features or request.starts or others else suggest,
        join=join,
        watch=watch,
        at_end=write,
    )
    if join:
        _share(study, of)
    return study


def _place(
    request: SearchRequest, target: Target | None, space: Space | None, say: Say
) -> tuple[Target, Space, tuple[OtherLibrary, ...]]:
    """The target and space of the request, and its further MPI libraries."""
    if not request.libraries:
        target = target or find_target(request.target, say)
        return target, space or target.space(request.space), ()
    if space is not None:
        raise UsageError(
            "space= is a Space, which is for one MPI library; with several, give the name or "
            "file of a space",
            code="mpi.argument",
        )
    if request.target.mpi is None:
        raise UsageError(
            "the first MPI library is missing; expected the name of each library",
            code="mpi.argument",
        )
    names = (request.target.mpi, *request.libraries)
    targets = searched_targets(request.target, names, say)
    space, others = chosen_spaces(targets, request.space)
    objective = None if target is None else target.objective
    return replace(targets[0], objective=objective), space, others


def _starts(
    request: SearchRequest, of: str | None, space: Space, target: Target, store: Store, say: Say
) -> list[Setting]:
    """The settings that the user has the search try first."""
    if request.starts:
        return start_settings(request.starts, space, target, store, say)
    if of is None and (hint := start_hint(target, store)) is not None:
        say(hint)
    return []


def _predicted(
    features: Features, space: Space, target: Target, say: Say, origin: str
) -> list[Setting]:
    """The warm start: predicted settings for the program of these features."""
    from autotune.api.predict import warm_start

    settings = warm_start(features, space, target)
    words = "; ".join(short_setting(p.to_json()) for p in settings) or "only the default"
    say(
        Note(
            "search.warm_start",
            f"warm start with predicted settings{origin}: {words}",
            {"settings": [p.to_json() for p in settings]},
        )
    )
    return list(settings)


def _share(study: SearchStudy, of: str | None) -> None:
    """Let other workers of this user take part with the same request."""
    store, request = study.store, study.request
    if of is not None:
        require_same_study(store, store.find_study(of), study.study)
    # A worker carries out what others asked for; what it asks itself, nobody wants.
    if of is None or study.study.request is None:
        paths = {
            name: str(Path(path).absolute())
            for name in ("features", "params_file")
            if (path := getattr(request, name)) is not None
        }
        sign(store, study.study, WorkerRequest(request.model_copy(update=paths), str(Path.cwd())))
