"""The beginning of a search: the names of its request looked up, and its study opened.

The last part has the settings that the user has a search try first: typed, or the answer of another
study. The answer of a study under another MPI library is written in this one's words
(:mod:`autotune.space.meanings`). It was proven there, so here it is a trial like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from autotune.api.figures import with_figure
from autotune.api.library_targets import chosen_spaces, searched_targets
from autotune.api.parameter_file import write_result_files
from autotune.api.target import find_target, to_stderr
from autotune.errors import UsageError
from autotune.measurement.events import Watcher, silent
from autotune.measurement.other_library import OtherLibrary
from autotune.measurement.study_key import require_same_study
from autotune.notes import Note, Say
from autotune.space import DEFAULT, Setting, Space
from autotune.space.meanings import translate
from autotune.store import Store, StudyKey, StudySummary
from autotune.store.listing import StudyQuery
from autotune.strategies import Strategy, find, resolve_options
from autotune.study.search_result import Result
from autotune.study.search_study import SearchStudy
from autotune.study.study_request import SearchRequest
from autotune.targets.setting_syntax import read_settings
from autotune.targets.target import Target
from autotune.wording import short_setting
from autotune.workers.worker_request import WorkerRequest
from autotune.workers.worker_trust import sign
from runner.mpi.discover import family

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
    writes_default_file: bool = True,
) -> SearchStudy:
    """The study of a request, begun or continued; nothing is measured yet.

    ``target``, ``space`` and ``strategy``, if given, replace those that the request names; with
    several MPI libraries only the objective of ``target`` counts. ``join``: other workers may take
    part. ``of`` is the hash of the study that this worker was started for.
    ``writes_default_file``: the file of a proven setting is written to this directory if the
    request names no path. Raises UsageError if the request is wrong.
    """
    figure = with_figure(request.target, store, say, guard=request.guard)
    request = request.model_copy(update={"target": figure})
    _ = request.plan  # What is wrong in it is said before anything is looked up.
    strategy = strategy or find(request.strategy)
    options = resolve_options(strategy, request.options, request.preset)
    target, space, others = _place(request, target, space, say)
    predictions: Sequence[Setting] = ()
    if request.features is not None:
        from autotune.api.features import read_features

        predictions = _warm_start(read_features(Path(request.features)), space, target, say, "")
    starts = _starts(request, of, space, target, store, say)

    def suggest(key: StudyKey) -> Sequence[Setting]:
        """The warm start where the database has a trace of the program; else nothing."""
        from autotune.api.features import stored_features

        features = stored_features(store, key)
        if features is None:
            return ()
        return _warm_start(features, space, target, say, " from a stored trace")

    def write(study: SearchStudy, result: Result) -> None:
        if writes_default_file or request.params_file is not None:
            write_result_files(study, result, request.params_file)

    study = SearchStudy(
        store,
        request,
        target,
        space,
        strategy,
        options,
        others=others,
        priors=(
            *starts,
            *_layout_starts(request, space, target, store, say),
            *predictions,
            *space.starts,
        ),
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


def _warm_start(
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


def _layout_starts(
    request: SearchRequest, space: Space, target: Target, store: Store, say: Say
) -> list[Setting]:
    """The layout that a model predicts, where the space has words of layouts: of the model that the
    user has trained, or with features also of the shipped one."""
    if not isinstance(space, Space) or not space.layout.words:
        return []
    from autotune.api.layout_prediction import layout_start

    def trace() -> Features | None:
        from autotune.api.features import read_features, traced_before

        if request.features is not None:
            return read_features(Path(request.features))
        return traced_before(store, target)

    setting = layout_start(space, target, shipped=request.features is not None, trace=trace)
    if setting == DEFAULT:
        return []
    words = short_setting(setting.to_json())
    data = {"setting": setting.to_json()}
    say(Note("search.layout_start", f"start with a predicted layout: {words}", data))
    return [setting]


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


STUDY = "study:"
_LOOKED_AT = 200
"""Newest proven studies among which one of the same program is looked for."""


def start_settings(
    texts: Sequence[str], space: Space, target: Target, store: Store, say: Say
) -> list[Setting]:
    """The settings that these texts stand for, in the words of the space, each once.

    ``say`` is told what has no counterpart under this library. Raises UsageError for a text that
    is no setting, for a study without a proven setting, and for a setting that the space does not
    allow.
    """
    settings: list[Setting] = []
    for text in texts:
        if text.startswith(STUDY):
            setting = _of_study(text, space, target, store, say)
        else:
            _, (setting,) = read_settings([text], space, target.library, store)
        if problems := space.violations(setting):
            raise UsageError(f"--start {text}: " + "; ".join(problems), code="setting.not_in_space")
        settings += [setting] if setting != DEFAULT else []
    return list(dict.fromkeys(settings))


def _of_study(text: str, space: Space, target: Target, store: Store, say: Say) -> Setting:
    study = store.find_study(text.removeprefix(STUDY))
    source, own = study.key.mpi.family, target.library.family
    if source == own:
        _, (setting,) = read_settings([text], space, target.library, store)
        return setting
    result = study.result or {}
    values = dict((result.get("recommended") or {}).get("setting") or {})
    if not values:
        raise UsageError(
            f"--start {text}: study {study.hash[:12]} has no proven setting (status "
            f"{study.status}); expected a study that ended with one",
            code="study.no_recommendation",
        )
    translation = translate(Setting(values), source, space, own)
    setting_words = short_setting(translation.setting.to_json())
    note_words = f"start from study {study.hash[:12]} ({source}): {setting_words}"
    if translation.left_out:
        note_words += (
            f"; without a counterpart in {family(own).title}: {', '.join(translation.left_out)}"
        )
    data = {
        "study": study.hash,
        "setting": translation.setting.to_json(),
        "left_out": [*translation.left_out],
    }
    say(Note("start.study", note_words, data))
    return translation.setting


def proof_under_other_mpi(target: Target, store: Store) -> StudySummary | None:
    """The newest study of the same program that proved a setting under another family.

    A program of one's own is the same if its file's name and its arguments are, because each
    library needs a build.
    """
    argv = _shape(target.program)
    page = store.study_page(StudyQuery(status="recommended", size=_LOOKED_AT))
    for study in (row.study for row in page.rows):
        if study.mpi.partition(" ")[0] == target.library.family or study.ranks != target.ranks:
            continue
        if _shape(study.argv) == argv:
            return study
    return None


def _shape(words: Sequence[str]) -> tuple[str, ...]:
    """A command line whose build does not count: without folder and suffix of the program."""
    if not words:
        return ()
    return (PurePath(words[0]).stem, *words[1:])


def start_hint(target: Target, store: Store) -> Note | None:
    """A note on :func:`proof_under_other_mpi`; None if there is no such study."""
    study = proof_under_other_mpi(target, store)
    if study is None:
        return None
    return Note(
        "start.proven_elsewhere",
        f"study {study.hash[:12]} proved a setting of this program under {study.mpi}: "
        f"--start {STUDY}{study.hash[:12]} tries what it means here first",
        {"study": study.hash, "mpi": study.mpi},
    )
