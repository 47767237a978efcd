"""Settings that the user has a search try first: typed, or the answer of another study.

The answer of a study under another MPI library is written in this one's words
(:mod:`autotune.space.meanings`). It was proven there, so here it is a trial like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.space import DEFAULT, Setting, Space
from autotune.space.meanings import translated
from autotune.store import Store, StudySummary
from autotune.store.listing import StudyQuery
from autotune.study.setting_syntax import read_settings
from autotune.targets.target import Target
from autotune.wording import short_setting
from runner.mpi.discover import family

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
    found: list[Setting] = []
    for text in texts:
        if text.startswith(STUDY):
            setting = _of_study(text, space, target, store, say)
        else:
            _, (setting,) = read_settings([text], space, target.library, store)
        if problems := space.violations(setting):
            raise UsageError(f"--start {text}: " + "; ".join(problems), code="setting.not_in_space")
        found += [setting] if setting != DEFAULT else []
    return list(dict.fromkeys(found))


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
    made = translated(Setting(values), source, space, own)
    said = f"start from study {study.hash[:12]} ({source}): {short_setting(made.setting.to_json())}"
    if made.left_out:
        said += f"; without a counterpart in {family(own).title}: {', '.join(made.left_out)}"
    data = {"study": study.hash, "setting": made.setting.to_json(), "left_out": [*made.left_out]}
    say(Note("start.study", said, data))
    return made.setting


def proven_elsewhere(target: Target, store: Store) -> StudySummary | None:
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
    """A note on :func:`proven_elsewhere`; None if there is no such study."""
    study = proven_elsewhere(target, store)
    if study is None:
        return None
    return Note(
        "start.proven_elsewhere",
        f"study {study.hash[:12]} proved a setting of this program under {study.mpi}: "
        f"--start {STUDY}{study.hash[:12]} tries what it means here first",
        {"study": study.hash, "mpi": study.mpi},
    )
