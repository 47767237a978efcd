"""Levels and default of a parameter, under a library and the facts of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.space.definition import ENUM, Keys
from autotune.space.expression import parse_expression
from autotune.space.parameter import divisor_expression, divisors, parse_levels
from autotune.space.setting import Value, normalise_value, read_value
from runner.mpi.library import ParamInfo, normalise


def levels_of(
    keys: Keys, info: ParamInfo | None, facts: Mapping[str, Value], where: str, library: str
) -> tuple[Value, ...]:
    """The levels of a parameter; ``where`` and ``library`` (its title, or "") are for messages.

    Raises :class:`UsageError` for missing, excluded or malformed levels.
    """
    if keys.levels is None:
        scope = f"for {library}" if library else "without a library"
        raise UsageError(
            f'{where}: no levels {scope}; give "levels", or "absent" with the reason',
            code="levels.none",
        )
    levels: tuple[Value, ...]
    if keys.levels == ENUM:
        levels = _enum_levels(info, where)
    elif (number := divisor_expression(keys.levels)) is not None:
        levels = divisors(parse_expression(number).evaluate(FactScope(facts)))
    else:
        levels = tuple(dict.fromkeys(number_of(v, info) for v in parse_levels(keys.levels)))
    exclusions = {number_of(normalise_value(value), info) for value in keys.exclude}
    remaining = tuple(level for level in levels if level not in exclusions)
    if not remaining:
        raise UsageError(f'{where}: "exclude" leaves no level', code="levels.none")
    return remaining


def _enum_levels(info: ParamInfo | None, where: str) -> tuple[Value, ...]:
    if info is None or not info.enum:
        raise UsageError(
            f'{where}: levels = "enum" takes the values from a library that enumerates them, and '
            "there is none here; give a list of levels",
            code="levels.none",
        )
    # "ignore" is coll/tuned's word for "unset".
    names = {number: name for number, name in sorted(info.enum.items()) if name != "ignore"}
    return tuple(names.values()) if info.by_name else tuple(names)


def number_of(value: Value, info: ParamInfo | None) -> Value:
    """The number of an enumerated name, the bytes of a size; other values unchanged."""
    if info is None or info.type == "string" or not isinstance(value, str):
        return value
    return read_value(normalise(value, info))


@dataclass(frozen=True)
class FactScope:
    """The scope of a rule that uses only facts."""

    facts: Mapping[str, Value]

    def value(self, name: str) -> Value | None:
        return self.facts.get(name)

    def is_set(self, name: str) -> bool:
        return False


def default_of(keys: Keys, info: ParamInfo | None, facts: Mapping[str, Value]) -> Value | None:
    """The value of unset: from the file, else from the library, or None."""
    if keys.default_rule is not None:
        result = parse_expression(keys.default_rule).evaluate(FactScope(facts))
        return None if result is None else normalise_value(result)
    if keys.default is not None:
        value = normalise_value(keys.default)
        return number_of(read_value(value) if isinstance(value, str) else value, info)
    if info is None or not info.default:
        return None  # An empty text means that the library chooses.
    return info.default if info.type == "string" else number_of(info.default, info)
