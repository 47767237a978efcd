"""Spaces by name: find the file, validate it, resolve it against the running library."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.config.find import find, listing
from autotune.errors import UsageError
from autotune.space.definition import FACTS, read_definition
from autotune.space.resolve import resolve
from autotune.space.setting import Value
from autotune.space.space import Space
from runner.mpi.library import Library

KIND = "spaces"


def load_space(
    name: str, library: Library | None = None, facts: Mapping[str, Value] | None = None
) -> Space:
    """The space ``name``, or several joined by ``+``; a part may be the path of a ``.toml`` file.

    ``facts`` (any of ranks, cores, nodes) are what expressions in the files may mention; one that
    is not given is unknown, and rules that need it do not bite.  With ``library=None`` names stay
    as in the file and nothing is looked up, which needs levels that are written out.
    Raises :class:`UsageError`.
    """
    for fact in facts or {}:
        if fact not in FACTS:
            raise UsageError(f"{fact!r} is no fact a space knows; facts are {', '.join(FACTS)}")
    parts = []
    for word in name.split("+"):
        file = find(KIND, word.strip())
        parts.append(resolve(read_definition(file), file.name, file.path, library, facts))
    return join(parts)


def join(parts: list[Space]) -> Space:
    """One space of all parts; raises :class:`UsageError` where two have the same parameter."""
    seen: dict[str, str] = {}
    for part in parts:
        for parameter in part:
            if parameter.name in seen:
                raise UsageError(
                    f"spaces {seen[parameter.name]} and {part.name} both have {parameter.name}; "
                    "leave one of the spaces out"
                )
            seen[parameter.name] = part.name
    first, *others = parts
    for other in others:
        first = Space(
            name=f"{first.name}+{other.name}",
            parameters=first.parameters + other.parameters,
            constraints=first.constraints + other.constraints,
            absent={**first.absent, **other.absent},
            facts={**first.facts, **other.facts},
            aliases={**first.aliases, **other.aliases},
        )
    return first


def space_names() -> list[str]:
    """The names of every space file that can be found."""
    return [file.name for file in listing(KIND)]
