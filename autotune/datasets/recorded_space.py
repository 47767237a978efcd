"""The recorded space: a space written out with names, levels and defaults, so that it needs no MPI.

A dataset may be read on a machine with another library or none. So it contains the meaning of
"enum" and of the library's defaults at the time of measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.config.find import read_file
from autotune.datasets.card import to_toml
from autotune.errors import UsageError
from autotune.space import Parameter, Space, Value
from autotune.space.definition import FACTS, read_definition
from autotune.space.expression import Expr
from autotune.space.named_space import load_space_file
from autotune.space.parameter import Argument, parse_levels
from autotune.space.vocabulary import BUILT_IN, LayoutRules, Naming


def narrow_space(space: Space, levels: Mapping[str, object], where: str) -> Space:
    """The space of these parameters only, with these levels (as in a space file).

    The known defaults of the other parameters become facts, so that rules about them still hold.
    ``where`` names the origin in error messages. Raises UsageError for an unknown parameter or an
    invalid level.
    """
    parameters = []
    for key, spec in levels.items():
        name = space.aliases.get(key, key)
        if name not in space:
            raise UsageError(
                f"{where}: levels.{key}: {space.unknown(name)}", code="parameter.unknown"
            )
        parameters.append(_with_levels(space[name], spec, f"{where}: levels.{key}"))
    names = {parameter.name for parameter in parameters}
    left_out = {p.name: p.default for p in space if p.name not in names and p.default is not None}
    rules = tuple(c for c in space.constraints if not names.isdisjoint(c.expr.names))
    arguments = tuple(a for a in space.arguments if _may_appear(a, space, names))
    narrow = replace(
        space,
        parameters=tuple(p for name in space.names for p in parameters if p.name == name),
        constraints=rules,
        arguments=arguments,
        aliases={},
        absent={},
    )
    fact_names = (_names_in_space(narrow) | _names_in_words(narrow)) - names - set(space.derived)
    facts = {n: v for n, v in {**left_out, **space.facts}.items() if n in fact_names or n in FACTS}
    return replace(narrow, facts=facts)


def _with_levels(parameter: Parameter, spec: object, where: str) -> Parameter:
    try:
        levels = tuple(dict.fromkeys(parameter.normalise(level) for level in parse_levels(spec)))
    except UsageError as problem:
        raise UsageError(f"{where}: {problem}", code="space.invalid") from None
    for level in levels:
        if wrong := parameter.problem(level, grid=False):
            raise UsageError(f"{where}: {level!r} {wrong}", code="levels.invalid")
    return replace(parameter, levels=levels)


def _may_appear(argument: Argument, space: Space, names: set[str]) -> bool:
    """True if one of the remaining parameters can make the argument appear."""
    behind: set[str] = set(argument.when.names) if argument.when else set()
    for place in argument.places:
        behind |= space.derived[place].names if place in space.derived else {place}
    return not names.isdisjoint(behind)


def _expressions(space: Space) -> Iterator[Expr]:
    for parameter in space:
        if parameter.when is not None:
            yield parameter.when
    for constraint in space.constraints:
        yield constraint.expr
    yield from space.derived.values()
    for argument in space.arguments:
        if argument.when is not None:
            yield argument.when


def _names_in_space(space: Space) -> set[str]:
    places = {name for argument in space.arguments for name in argument.places}
    return places.union(*(expr.names for expr in _expressions(space)))


def _names_in_words(space: Space) -> set[str]:
    return set().union(*(space.layout.names(word) for word in space.layout.words)) - set(BUILT_IN)


AS_MEASURED = ", as it was measured"
"""What follows the name of the space in the description of a recorded space."""


def recorded_space(space: Space) -> str:
    """The text of a space file that :func:`space_of_record` reads back to the same space."""
    extra = sorted(_names_in_space(space) - set(space.names) - set(space.derived) - set(FACTS))
    data: dict[str, Any] = {
        "description": f"{space.name}{AS_MEASURED}; names and defaults of that library",
        "requires": min(space.requires, default=None),
        "app_facts": extra or None,
        "derived": {name: str(expr) for name, expr in space.derived.items()} or None,
        "parameters": {p.name: _parameter(p) for p in space},
        "arguments": [
            {"words": a.template, "when": str(a.when) if a.when else None} for a in space.arguments
        ]
        or None,
        "constraints": [{"rule": str(c.expr), "reason": c.reason} for c in space.constraints]
        or None,
        "layout": _layout(space) if space.layout.words else None,
    }
    return to_toml({key: value for key, value in data.items() if value is not None})


def _layout(space: Space) -> dict[str, Any]:
    rules = space.layout
    known = {*space.names, *space.derived, *FACTS}
    return {
        "facts": sorted(_names_in_words(space) - known) or None,
        "words": {word: _word(rules, word) for word in rules.words},
        "own": {name: why for name, why in rules.own.items() if name in space} or None,
        "absent": dict(rules.absent) or None,
    }


def _word(rules: LayoutRules, word: str) -> str | dict[str, Any]:
    rule = rules.words[word]
    if not isinstance(rule, Naming):
        return str(rule)
    return {"of": rule.parameter, "names": dict(rule.names), "other": rule.other}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "levels": list(parameter.levels),
        "target": parameter.target,
        "default": parameter.default,
        "unset": None if parameter.unset else False,
        "when": str(parameter.when) if parameter.when else None,
        "option": parameter.option,
        "help": parameter.help,
        **({"implies": implies} if (implies := _implies(parameter)) else {}),
    }


def _implies(parameter: Parameter) -> dict[str, Any]:
    by_level = {str(level): dict(values) for level, values in parameter.implies_at.items()}
    return {**parameter.implies, **by_level}


def recorded_name(path: Path) -> str:
    """The name of the space that a recorded space file was made from, "" if it does not say it."""
    name, separator, _ = read_definition(read_file(path)).description.partition(AS_MEASURED)
    return name if separator else ""


def space_of_record(path: Path, facts: Mapping[str, Value], name: str) -> Space:
    """The space of a recorded space file with the facts of a cell; raises UsageError."""
    standard_facts = {fact: value for fact, value in facts.items() if fact in FACTS}
    others = {fact: value for fact, value in facts.items() if fact not in FACTS}
    return replace(load_space_file(path, facts=standard_facts, app_facts=others), name=name)
