"""JSON from outside: of bounded depth, and nothing that only Python takes for JSON.

Python's parser goes as deep as its stack, and what it parsed may be too deep for the next program
that reads or writes it. It also takes NaN and Infinity, which no other program reads.
"""

from __future__ import annotations

import json
import math
from typing import Any

DEPTH = 64
"""Levels of lists and objects in a document; deeper ones are refused."""


def parse_json(text: str | bytes, *, finite: bool = False) -> Any:
    """The value of a JSON text; ``finite``: NaN, Infinity and numbers beyond a double are refused.

    Raises ValueError for everything else than JSON of at most :data:`DEPTH` levels.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level, todo = 0, [value]
    while todo:
        holders = [one for one in todo if isinstance(one, dict | list)]
        if finite and not all(map(_is_finite, todo)):
            raise ValueError("it holds a number that is not finite (NaN or Infinity)")
        if not holders:
            return value
        level += 1
        if level > DEPTH:
            raise ValueError(_TOO_DEEP)
        todo = [
            inner for one in holders for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return value


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


_TOO_DEEP = f"it is nested deeper than {DEPTH} levels"
