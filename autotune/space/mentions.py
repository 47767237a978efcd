"""Names that a space file mentions: each must be something that the file or the caller gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from autotune.space.expression import parse as parse_expression
from autotune.space.levels import divided
from autotune.space.setting import Setting
from autotune.space.words import Argument

if TYPE_CHECKING:
    from autotune.space.definition import Definition, Keys, ParameterTable

FACTS = ("ranks", "cores", "nodes")
"""What the caller may tell about the situation: cores that the ranks use in all (by default one
each); cores and nodes available to the job."""


def problems(definition: Definition) -> Iterator[str]:
    """What is wrong with names: where, and in which way."""
    facts = (*FACTS, *definition.app_facts)
    named = {*definition.parameters, *definition.derived}
    for name in definition.derived:
        if name in definition.parameters or name in facts:
            yield f"derived.{name}: a parameter or a fact has this name already; choose another"
    for where, text in expressions(definition):
        known, what = (named, "neither a parameter of this file nor a fact")
        if where.endswith(".levels"):
            # Levels are fixed before there is a setting.
            known, what = set(), "no fact"
        for name in sorted(parse_expression(text).names - known - set(facts)):
            yield f"{where}: {name} is {what} ({', '.join(facts)})"
    yield from _order_of_derived(definition)
    for where, template in templates(definition):
        for name in Argument(template).places:
            yield from _place(definition, where, name, facts)
    yield from _workers(definition)
    for i, start in enumerate(definition.start):
        for name in sorted(Setting.parse(start.setting).keys() - definition.parameters.keys()):
            yield f"start.{i}.setting: {name} is not a parameter of this file"


def expressions(definition: Definition) -> list[tuple[str, str]]:
    """Every expression with the key it stands at."""
    found = []
    for where, keys in _tables(definition):
        number = divided(keys.levels)
        given = (("when", keys.when), ("default_rule", keys.default_rule), ("levels", number))
        found += [(f"{where}.{key}", text) for key, text in given if text]
    found += [(f"derived.{name}", text) for name, text in definition.derived.items()]
    found += [(f"arguments.{i}.when", a.when) for i, a in enumerate(definition.arguments) if a.when]
    found += [(f"constraints.{i}.rule", c.rule) for i, c in enumerate(definition.constraints)]
    return found


def templates(definition: Definition) -> list[tuple[str, str]]:
    """Every template of program words with the key it stands at."""
    found = [(f"{where}.option", k.option) for where, k in _tables(definition) if k.option]
    found += [(f"arguments.{i}.words", a.words) for i, a in enumerate(definition.arguments)]
    return found


def _tables(definition: Definition) -> Iterator[tuple[str, Keys]]:
    for name, table in definition.parameters.items():
        yield f"parameters.{name}", table
        for spec, keys in table.on.items():
            yield f"parameters.{name}.on.{spec}", keys


def _order_of_derived(definition: Definition) -> Iterator[str]:
    later = set(definition.derived)
    for name, text in definition.derived.items():
        for other in sorted(parse_expression(text).names & later):
            yield f"derived.{name}: {other} must be given before it"
        later.discard(name)


def _place(definition: Definition, where: str, name: str, facts: tuple[str, ...]) -> Iterator[str]:
    if name in definition.derived or name in facts:
        return
    if name not in definition.parameters:
        yield f"{where}: {{{name}}} is not a parameter, derived value or fact of this file"
    elif where.startswith("arguments.") and not _always_known(name, definition.parameters[name]):
        yield f"{where}: {{{name}}} has no value where it is unset; give it a default"


def _always_known(name: str, table: ParameterTable) -> bool:
    tables = [table, *table.on.values()]
    return (
        not table.unset
        or is_workers(name, table)
        or any(keys.default is not None or keys.default_rule is not None for keys in tables)
    )


def _workers(definition: Definition) -> Iterator[str]:
    """The default is flat, one rank per core: unset workers mean one."""
    table = definition.parameters.get("workers")
    if table is not None and is_workers("workers", table) and table.default not in (None, 1):
        yield "parameters.workers.default: must be 1, since the default is one rank per core"


def is_workers(name: str, keys: Keys) -> bool:
    """Whether a parameter is the number of cores of each process."""
    return name == "workers" and keys.target in (None, "resource")
