"""Levels and default of one parameter under one library and the facts of the situation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.space.definition import ENUM, Keys
from autotune.space.expression import parse as parse_expression
from autotune.space.levels import divided, divisors, parse_levels
from autotune.space.setting import Value, normalise_value, read_value
from runner.mpi.library import ParamInfo
from runner.mpi.values import normalise


def levels_of(
    keys: Keys, info: ParamInfo | None, facts: Mapping[str, Value], where: str, library: str
) -> tuple[Value, ...]:
    """The grid; ``where`` and ``library`` (its title, or "") are for messages.

    Raises :class:`UsageError`.
    """
    if keys.levels is None:
        known = f"for {library}" if library else "without a library"
        raise UsageError(f'{where}: no levels {known}; give "levels", or "absent" with the reason')
    levels: tuple[Value, ...]
    if keys.levels == ENUM:
        levels = _enumerated(info, where)
    elif (number := divided(keys.levels)) is not None:
        levels = divisors(parse_expression(number).evaluate(_Facts(facts)))
    else:
        levels = tuple(dict.fromkeys(_number(v, info) for v in parse_levels(keys.levels)))
    excluded = {_number(normalise_value(value), info) for value in keys.exclude}
    kept = tuple(level for level in levels if level not in excluded)
    if not kept:
        raise UsageError(f'{where}: "exclude" leaves no level')
    return kept


def _enumerated(info: ParamInfo | None, where: str) -> tuple[Value, ...]:
    if info is None or not info.enum:
        raise UsageError(
            f'{where}: levels = "enum" takes the values from a library that enumerates them, and '
            "there is none here; give a list of levels"
        )
    # "ignore" is how coll/tuned spells "unset".
    return tuple(number for number, name in sorted(info.enum.items()) if name != "ignore")


def _number(value: Value, info: ParamInfo | None) -> Value:
    """An enumerated name as its number, a size as its bytes; other values as they are."""
    if info is None or info.type == "string" or not isinstance(value, str):
        return value
    return read_value(normalise(value, info))


@dataclass(frozen=True)
class _Facts:
    """The scope of a rule that mentions facts only."""

    facts: Mapping[str, Value]

    def value(self, name: str) -> Value | None:
        return self.facts.get(name)

    def is_set(self, name: str) -> bool:
        return False


def default_of(keys: Keys, info: ParamInfo | None, facts: Mapping[str, Value]) -> Value | None:
    """What unset means: the file's word if it gives one, else the library's; None: not known."""
    if keys.default_rule is not None:
        result = parse_expression(keys.default_rule).evaluate(_Facts(facts))
        return None if result is None else normalise_value(result)
    if keys.default is not None:
        given = normalise_value(keys.default)
        return _number(read_value(given) if isinstance(given, str) else given, info)
    if info is None:
        return None
    return info.default if info.type == "string" else _number(info.default, info)
