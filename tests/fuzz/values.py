"""Damage inside of JSON: the document stays JSON, a part of it is no longer what it should be."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

from tests.fuzz.damage import damaged

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, float("nan"), float("inf"), -0.0, 2**63),
    *("", "x", "../../x", "\0", "a\nb", "NaN", "1e999", "default", [], [None], {}, {"x": 1}),
    *([[[]]], {"": {}}, [{}], "é" * 300),
)


def spoilt(source: random.Random, data: Any) -> Any:
    """A copy with one entry replaced, removed, doubled, renamed, or exchanged with another."""
    whole = [copy.deepcopy(data)]
    places = list(_places(whole))
    inner = [place for place in places if place[0] is not whole] or places
    holder, key = source.choice(inner)
    what = source.randrange(6)
    if what == 0 and holder is not whole:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif what == 2 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif what == 3:
        other, name = source.choice(inner)
        holder[key] = copy.deepcopy(other[name])
    else:
        holder[key] = source.choice(ODD_VALUES)
    return whole[0]


def _places(data: Any) -> list[tuple[Any, Any]]:
    """(list or object, index or key) of every entry."""
    keys = range(len(data)) if isinstance(data, list) else list(data)
    found = [(data, key) for key in keys]
    for key in keys:
        if isinstance(data[key], dict | list):
            found += _places(data[key])
    return found


def damaged_json(seeds: Sequence[str], seed: int) -> str:
    """One of the documents; mostly still JSON, else damaged as text is."""
    source = random.Random(seed)
    if source.randrange(4) == 0:
        return damaged(seeds, seed)
    if source.randrange(50) == 0:
        return source.choice(('["a",', '{"a":', "[")) * 100_000
    data = json.loads(source.choice(list(seeds)))
    for _ in range(source.randrange(1, 4)):
        data = spoilt(source, data)
    return json.dumps(data)


def damaged_within(before: str, after: str, seeds: Sequence[str], seed: int) -> str:
    """Text that holds JSON between ``before`` and ``after``: mostly that is damaged."""
    source = random.Random(seed)
    if source.randrange(4) == 0:
        return damaged(seeds, seed)
    text = source.choice(list(seeds))
    start = text.index(before) + len(before)
    end = text.index(after, start)
    return text[:start] + damaged_json((text[start:end],), seed) + text[end:]
