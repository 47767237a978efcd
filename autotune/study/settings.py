"""The setting syntax of the command line: ``default``, ``name=value``, ``@file``, ``study:ID``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.space.named import admitted, plain_names, without_implied
from autotune.space.parameter import Target
from autotune.space.trust import Names, check_values, known_names
from autotune.store import Store
from autotune.study.setting_file import read_setting_file
from runner.mpi.library import Library

_OUTSIDE = ("@", "study:")
"""Not typed here: a file or a database may say less than this command line."""


def read_settings(
    texts: Sequence[str], space: Space, library: Library, store: Store | None = None
) -> tuple[Space, list[Setting]]:
    """The settings that these texts mean, and the space with every parameter that they name.

    ``@file`` is read by :func:`read_setting_file`; ``study:ID`` is what that study recommended, and
    needs ``store``.  From either, only parameters of spaces that are shipped or the user's own are
    taken, and none that decides which program, library or file is used.  Raises UsageError.
    """
    settings: list[Setting] = []
    targets: dict[str, Target] = {}
    for text in texts:
        found, more = plain_names(_values(text, store))
        found = without_implied(found, space)
        if text.startswith(_OUTSIDE):
            check_values(found, text, space)
            _check_known(found, text, space, library)
        settings.append(found)
        targets |= more
    wider = admitted(space, settings, library, targets)
    for text, setting in zip(texts, settings, strict=True):
        problems = wider.violations(setting, grid=False)
        if problems:
            raise UsageError(f"the setting {text!r} cannot be used: " + "; ".join(problems))
    return wider, [wider.canonical(setting) for setting in settings]


def _values(text: str, store: Store | None) -> Setting:
    if text.startswith("@"):
        return Setting(read_setting_file(Path(text[1:])))
    if text.startswith("study:"):
        return _from_study(text[6:], store)
    return Setting.parse(text)


def _check_known(setting: Setting, text: str, space: Space, library: Library) -> None:
    strange = [name for name in setting if name not in space and name not in space.absent]
    known: Names = known_names(library) if strange else {}
    for name in strange:
        if name not in known:
            raise UsageError(
                f"{text}: no space known here has {name}; from such a source only parameters "
                "of the shipped spaces and of your own are taken.\nIf you trust it, type it "
                f"({name}=VALUE), or name a space file that has it (--space FILE)."
            )


def _from_study(wanted: str, store: Store | None) -> Setting:
    if store is None:
        raise UsageError("study:ID needs a results database, and none is open; give --store")
    study = store.find_study(wanted)
    result = study.result
    if result is None or "recommended" not in result:
        raise UsageError(
            f"study {study.hash[:12]} has no result yet (status {study.status}); finish it first"
        )
    values = dict(result["recommended"]["setting"])
    if not values and result.get("best"):
        raise UsageError(
            f"study {study.hash[:12]} recommends the default. Its best setting, "
            f"{Setting(result['best']['setting']).key}, is not proven; to use it all the "
            "same, type it"
        )
    return Setting(values)
