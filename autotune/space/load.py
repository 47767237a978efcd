"""Spaces by name: find the file, validate it, resolve it against the running library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.config.find import ConfigFile, find, listing, read_file
from autotune.errors import UsageError
from autotune.space.definition import read_definition
from autotune.space.mentions import FACTS
from autotune.space.resolve import resolve
from autotune.space.setting import Value
from autotune.space.space import Space
from runner.mpi.library import Library

KIND = "spaces"


def load_space(
    name: str,
    library: Library | None = None,
    facts: Mapping[str, Value] | None = None,
    app_facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space ``name``, or several joined by ``+``; a part may be the path of a ``.toml`` file.

    ``facts`` (any of ranks, cores, nodes) are what expressions in the files may mention; one that
    is not given is unknown, and rules that need it do not bite.  ``app_facts`` are what the
    application tells about its input; a file sees those that it names.  With ``library=None``
    names stay as in the file and nothing is looked up, which needs levels that are written out.
    Raises :class:`UsageError`.
    """
    files = [find(KIND, word.strip()) for word in name.split("+")]
    return join([_space(file, library, facts or {}, app_facts or {}) for file in files])


def load_space_file(
    path: Path,
    facts: Mapping[str, Value] | None = None,
    app_facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space of one file without a library, as :func:`load_space`, whatever its path holds."""
    return _space(read_file(path), None, facts or {}, app_facts or {})


def _space(
    file: ConfigFile,
    library: Library | None,
    facts: Mapping[str, Value],
    app_facts: Mapping[str, Value],
) -> Space:
    for fact in facts:
        if fact not in FACTS:
            raise UsageError(
                f"{fact!r} is not a fact that a space knows; facts are {', '.join(FACTS)}"
            )
    definition = read_definition(file)
    told = {k: v for k, v in app_facts.items() if k in definition.app_facts}
    return resolve(definition, file.name, file.path, library, {**facts, **told})


def join(parts: list[Space]) -> Space:
    """One space of all parts; raises :class:`UsageError` where two have the same parameter."""
    seen: dict[str, str] = {}
    for part in parts:
        for name in [*part.names, *part.derived]:
            if name in seen:
                raise UsageError(
                    f"spaces {seen[name]} and {part.name} both have {name}; "
                    "leave one of the spaces out"
                )
            seen[name] = part.name
    first, *others = parts
    for other in others:
        first = Space(
            name=f"{first.name}+{other.name}",
            parameters=first.parameters + other.parameters,
            constraints=first.constraints + other.constraints,
            absent={**first.absent, **other.absent},
            facts={**first.facts, **other.facts},
            aliases={**first.aliases, **other.aliases},
            derived={**first.derived, **other.derived},
            arguments=first.arguments + other.arguments,
            requires=first.requires | other.requires,
            starts=first.starts + other.starts,
        )
    return first


def space_names() -> list[str]:
    """The names of every space file that can be found."""
    return [file.name for file in listing(KIND)]
