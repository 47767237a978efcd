"""Spaces by name: from the files of ``configs/spaces``, from other files, and several joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from autotune.config.find import ConfigFile, find_config, list_configs, read_file
from autotune.errors import UsageError
from autotune.space.definition import FACTS, KIND, matches, read_definition
from autotune.space.resolve import resolve
from autotune.space.setting import Setting, Value
from autotune.space.space import Space
from runner.mpi.library import Library


def load_space(
    name: str,
    library: Library | None = None,
    facts: Mapping[str, Value] | None = None,
    app_facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space ``name``, or several joined by ``+``; a part may be the path of a ``.toml`` file.

    Expressions in the files may use ``facts`` (any of ranks, cores, nodes). A missing fact is
    unknown, and rules that need it never reject a setting. ``app_facts`` are the application's
    facts about its input; a file gets those that it names. With ``library=None`` names stay as in
    the file and no library is queried, so all levels must be written out. Raises
    :class:`UsageError`.
    """
    files = [find_config(KIND, word.strip()) for word in name.split("+")]
    return join([_space(file, library, facts or {}, app_facts or {}) for file in files])


def parts_for(name: str, library: Library) -> str:
    """The parts of a name joined by ``+`` that are for a library, or for any; "" if none is."""
    parts = [part.strip() for part in name.split("+")]
    libraries = {part: read_definition(find_config(KIND, part)).library for part in parts}
    return "+".join(p for p, spec in libraries.items() if not spec or matches(spec, library))


def load_space_file(
    path: Path,
    facts: Mapping[str, Value] | None = None,
    app_facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space of one file without a library, as :func:`load_space`; any path is accepted."""
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
                f"{fact!r} is not a fact that a space knows; facts are {', '.join(FACTS)}",
                code="space.fact_unknown",
            )
    definition = read_definition(file)
    layout_facts = definition.layout.facts
    own_facts = {
        k: v for k, v in app_facts.items() if k in definition.app_facts or k in layout_facts
    }
    return resolve(definition, file.name, file.path, library, {**facts, **own_facts})


def join(parts: list[Space]) -> Space:
    """One space of all parts.

    Those settings that a part begins with are also tried together with the first of the parts
    before it. Raises :class:`UsageError` if two have the same parameter.
    """
    owners: dict[str, str] = {}
    for part in parts:
        for name in [*part.names, *part.derived]:
            if name in owners:
                raise UsageError(
                    f"spaces {owners[name]} and {part.name} both have {name}; "
                    "leave one of the spaces out",
                    code="space.parameter_twice",
                )
            owners[name] = part.name
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
            # The added space is the more specific one.
            starts=(*other.starts, *_together(other, first), *first.starts),
            layout=first.layout.joined(other.layout),
        )
    return first


def _together(space: Space, other: Space) -> Iterator[Setting]:
    """Each setting that a space begins with, with the first that another one begins with."""
    for start in other.starts[:1]:
        yield from (own.with_values(start) for own in space.starts)


def space_names() -> list[str]:
    """The names of all available space files."""
    return [file.name for file in list_configs(KIND)]
