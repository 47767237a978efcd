"""JSON from outside: of bounded depth, without Python's extensions.

Python's parser goes as deep as its stack; the result may be too deep for the next program. It also
accepts NaN and Infinity, which other programs refuse.
"""

from __future__ import annotations

import json
import math
from typing import Any

DEPTH = 64
"""Levels of lists and objects in a document; deeper ones are refused."""


def parse_json(text: str | bytes, *, finite: bool = False) -> Any:
    """The value of a JSON text; ``finite``: NaN, Infinity and numbers beyond a double are refused.

    Raises ValueError for anything but JSON of at most :data:`DEPTH` levels.
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
