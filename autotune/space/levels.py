"""Levels as people write them in a TOML file: lists, ranges, sizes, booleans."""

from __future__ import annotations

import re

from autotune.errors import UsageError
from autotune.space.setting import Value, normalise_value, read_value

MOST_LEVELS = 10_000

_NUMBER = r"[+-]?\d+[kKmMgG]?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::([*+])(\d+[kKmMgG]?))?")
_WAYS = (
    'expected a list such as [0, "4k", "64k"], a range "LO:HI" (step 1), "LO:HI:+STEP" or '
    '"LO:HI:*FACTOR" (K = 1024), "divisors: EXPRESSION", "bool" or "enum"'
)
_DIVISORS = "divisors:"


def parse_levels(spec: object) -> tuple[Value, ...]:
    """The levels in the order given, each once.

    A string is one range or ``"bool"``; a list holds values and ranges.  ``"64k"`` is 65536 and
    ``true`` is 1.  Raises :class:`UsageError` without the place, which the caller adds.
    """
    if spec == "bool":
        return (0, 1)
    if isinstance(spec, str):
        levels = _range(spec)
        if levels is None:
            raise UsageError(f"{spec!r} is not a range of levels; {_WAYS}")
        return levels
    if not isinstance(spec, list) or not spec:
        raise UsageError(f"{spec!r} is not a list of levels; {_WAYS}")
    found: dict[Value, None] = {}
    for item in spec:
        found.update(dict.fromkeys(_item(item)))
    if len({isinstance(level, str) for level in found}) > 1:
        raise UsageError(f"levels {list(found)} mix words and numbers; use one kind")
    return tuple(found)


def divided(spec: object) -> str | None:
    """The expression of levels ``"divisors: EXPRESSION"``, None for any other levels."""
    if isinstance(spec, str) and spec.startswith(_DIVISORS):
        return spec.removeprefix(_DIVISORS).strip()
    return None


def divisors(number: object, most: int = MOST_LEVELS) -> tuple[int, ...]:
    """Every whole number up to ``most`` that divides ``number``.

    Of a number that is not known, or not a whole one from 1 on, only 1 is known to.
    """
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or number < 1:
        return (1,)
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)


def _item(item: object) -> tuple[Value, ...]:
    if not isinstance(item, str):
        return (normalise_value(item),)
    return _range(item) or (read_value(item),)


def _range(text: str) -> tuple[int, ...] | None:
    """The integers of a range, both ends included where they are hit; None if it is no range."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    low, high = _integer(match[1]), _integer(match[2])
    sign, step = match[3] or "+", _integer(match[4] or "1")
    if low > high:
        raise UsageError(f"range {text!r}: {low} is above {high}; write the smaller one first")
    if step < (2 if sign == "*" else 1):
        raise UsageError(f"range {text!r}: a step must be at least +1 or *2")
    if sign == "*" and low < 1:
        raise UsageError(f"range {text!r}: a factor needs a start of at least 1, not {low}")
    if sign == "+" and (high - low) // step >= MOST_LEVELS:
        raise UsageError(f"range {text!r} has more than {MOST_LEVELS} levels; use larger steps")
    if sign == "+":
        return tuple(range(low, high + 1, step))
    levels = [low]
    while levels[-1] * step <= high:
        levels.append(levels[-1] * step)
    return tuple(levels)


def _integer(text: str) -> int:
    value = read_value(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} is too large a number")
    return value
