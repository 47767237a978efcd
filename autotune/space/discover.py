"""Discovery: search the parameters of a library, and start a space file from them."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Iterable

from autotune.errors import UsageError
from autotune.space.check import is_flags
from autotune.space.resolve import title
from runner.mpi.discover import adapter
from runner.mpi.library import Library, ParamInfo

_WIDTH = 96
_INTEGERS = ("int", "unsigned", "size_t")


def discover(library: Library, pattern: str | None = None, level: int = 9) -> list[ParamInfo]:
    """The parameters whose names match, ordered by name.

    ``pattern`` is a part of the name, or a glob with ``*`` and ``?``. ``level`` (1-9) is Open MPI's
    own grade of a parameter's specialisation, 9 = all. Synonyms of a listed parameter are left out,
    and so are parameters that only print more. Raises :class:`UsageError` if the library lists
    nothing.
    """
    if not library.params:
        raise UsageError(
            f"{title(library)} does not list its parameters", code="mpi.no_parameter_list"
        )
    return [
        info
        for name, info in sorted(library.params.items())
        if info.level <= level
        and info.synonym_of not in library.params
        and not name.endswith("_verbose")
        and _matches(name, pattern)
    ]


def idle_parameters(infos: Iterable[ParamInfo], library: Library, transport: str) -> dict[str, str]:
    """The parameters in ``infos`` without effect under a transport, each with the reason."""
    return adapter(library).idle_under((info.name for info in infos), transport)


def outranked_parameters(infos: Iterable[ParamInfo], library: Library) -> dict[str, str]:
    """The parameters in ``infos`` whose component serves no collective by default, with the
    reason."""
    below = adapter(library).idle_parameters()
    return {info.name: below[info.name] for info in infos if info.name in below}


def _matches(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    if any(sign in pattern for sign in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern.lower() in name.lower()


def as_toml(infos: Iterable[ParamInfo], library: Library) -> str:
    """A space file to start from: guessed levels around each default, to be edited by hand.

    A parameter without a guess becomes a comment. The text is a valid space file if at least one
    parameter could be guessed.
    """
    major = ".".join(str(part) for part in library.version_tuple[:2])
    lines = [
        f"# Guessed from {title(library)}: check the levels before you search with them.",
        'description = ""',
        f'library = "{library.family}=={major}"' if major else f'library = "{library.family}"',
    ]
    for info in infos:
        lines += ["", *_table(info)]
    return "\n".join(lines) + "\n"


def _table(info: ParamInfo) -> list[str]:
    levels = guess_levels(info)
    default = f"# default {info.default or 'empty'}, {info.type}, level {info.level}"
    text = " ".join(info.help.split())
    table = [f"[parameters.{info.name}]"]
    if levels is None:
        table = [f"# {table[0]}", "# levels = []   # nothing to guess from: add your own"]
    else:
        table.append(f"levels = {json.dumps(levels)}")
    summary = text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
    about = [f"# {summary}"] if summary else []
    return [_printable(line) for line in (default, *about, *table)]


def guess_levels(info: ParamInfo) -> str | list[int] | list[float] | None:
    """Levels to try: all values of an enumeration, else some around the default, or None."""
    if info.type == "bool":
        return "bool"
    if info.enum:
        return None if is_flags(info) or not _worthwhile(info.enum) else "enum"
    if info.type == "double":
        middle = _number(info.default) or 0.0
        levels = [middle / 2, middle * 2]
        return levels if all(0 < level < math.inf for level in levels) else None
    if info.type not in _INTEGERS:
        return None
    number = _number(info.default)
    if number is None or not 1 <= number < 2**40:
        return None
    whole = int(number)
    around = (whole // 4, whole // 2, whole * 2, whole * 4)
    return [level for level in dict.fromkeys(around) if level > 0]


def _worthwhile(enum: dict[int, str]) -> bool:
    return any(name != "ignore" for name in enum.values())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _printable(line: str) -> str:
    """The line without control characters, which TOML comments may not contain."""
    return "".join(char if char.isprintable() else " " for char in line)
