"""The formats of published files by name.

A new format is a class in a file of this package and an entry in ``ALL``.  An installed package
adds a format by an entry point ``NAME = "module:Class"`` of the group ``autotune.formats``.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.publish.formats.base import Canary, Format, Loading
from autotune.publish.formats.easybuild import EasyBuildHook
from autotune.publish.formats.impi import ImpiEnv, ImpiUser
from autotune.publish.formats.mca_conf import (
    PrteSystemConf,
    PrteUserConf,
    SystemConf,
    Tune,
    UserConf,
)
from autotune.publish.formats.mpich import MpichEnv, MpichJson, MpichLayersJson
from autotune.publish.formats.page import UserPage
from autotune.publish.formats.reframe import ReframeTest
from autotune.publish.formats.rules import RulesV1, RulesV2, RulesV3
from autotune.publish.formats.scripts import Csh, Lmod, Sh, SlurmLines, TclModule
from autotune.publish.formats.spack import Spack
from runner.extensions import extension, extension_names
from runner.mpi.library import Library

GROUP = "autotune.formats"
ALL: tuple[Format, ...] = (
    UserConf(),
    SystemConf(),
    PrteUserConf(),
    PrteSystemConf(),
    Tune(),
    Sh(),
    Csh(),
    Lmod(),
    TclModule(),
    SlurmLines(),
    Spack(),
    EasyBuildHook(),
    ReframeTest(),
    UserPage(),
    RulesV1(),
    RulesV2(),
    RulesV3(),
    MpichEnv(),
    MpichJson(),
    MpichLayersJson(),
    ImpiEnv(),
    ImpiUser(),
)


def everything() -> tuple[Format, ...]:
    """Every format, with those of installed packages.

    Raises RunnerError with the entry point if a format is broken.
    """
    return (*ALL, *(find(name) for name in extension_names(GROUP, _own())))


def names() -> list[str]:
    """The names of all formats."""
    return [*_own(), *extension_names(GROUP, _own())]


def _own() -> list[str]:
    return [one.name for one in ALL]


def find(name: str) -> Format:
    """The format with that name.

    Raises UsageError with the known names, RunnerError with the entry point if it is broken.
    """
    for one in ALL:
        if one.name == name:
            return one
    if name in extension_names(GROUP, _own()):
        return extension(GROUP, name, Format)()  # type: ignore[type-abstract]
    near = difflib.get_close_matches(name, names(), 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"--format {name!r} is not known{hint}\nKnown formats: {', '.join(names())}",
        code="publish.format_unknown",
    )


def usual(content: Content, library: Library) -> list[Format]:
    """The formats that are written if the user names none: files of the user that together hold
    everything that such files can express.  Raises UsageError if they can express nothing."""
    formats = [
        fmt
        for fmt in sorted(ALL, key=lambda one: one.usual)
        if fmt.usual and fmt.family == library.family and _holds(fmt, content, library)
    ]
    if not formats:
        raise UsageError(
            f"the setting has nothing that {library.family}'s own files can express: "
            f"{', '.join(sorted(name for _, name in content.names)) or 'it is the default'}.\n"
            "Choose a format with --format NAME (autotune publish --formats lists them), "
            "such as sh",
            code="publish.not_expressible",
        )
    return formats


def complete(formats: Sequence[Format], content: Content, library: Library) -> list[Format]:
    """The formats, and those without whose files one of them does nothing for the content."""
    more = [name for fmt in formats for name in fmt.companions(content, library)]
    have = {fmt.name for fmt in formats}
    return [*formats, *(find(name) for name in dict.fromkeys(more) if name not in have)]


def _holds(fmt: Format, content: Content, library: Library) -> bool:
    """Whether the format can express a part of the content.

    A rules table among the values of the setting itself is not taken apart: it stays with these
    values.
    """
    if isinstance(fmt, RulesV1):
        return bool(content.rules and fmt.part(content, library).rules)
    return bool((content.rules and fmt.loads_rules) or fmt.part(content, library).names)


__all__ = [
    "ALL",
    "GROUP",
    "Canary",
    "Format",
    "Loading",
    "complete",
    "everything",
    "find",
    "names",
    "usual",
]
