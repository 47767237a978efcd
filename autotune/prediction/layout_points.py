"""Layouts as points: what models over layouts know of a setting, as numbers of one scale.

Two layouts that are near each other act alike in different programs. The columns are sizes as
doublings, and marks for what is either so or not; each has a weight, the distance that it makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.prediction.measured_cell import Floats
from autotune.space import DEFAULT, Setting, Value
from autotune.space.eager import eager_limit
from autotune.space.layout import LayoutMap

COLUMNS: Mapping[str, float] = {
    "flat": 1.4,
    "split": 1.4,
    "threads": 1.4,
    "tasks": 1.4,
    "chunks": 1.4,
    "several_nodes": 3.0,
    "has_chunk": 1.5,
    "chunk": 0.7,
    "eager": 1.5,
    "chunk_of_default": 0.35,
    "default_is_eager": 0.7,
    "has_factor": 1.5,
    "factor": 0.6,
    "factor_of_default": 0.3,
    "workers": 1.0,
    "cut_x": 0.3,
    "waits_for_neighbours": 0.7,
    "waits_for_all": 0.7,
}
"""The columns with their weights.

``chunk`` is in doublings of the eager limit, ``eager`` 1 below it: there a message leaves without
waiting for its receiver. What the default does counts too: where its messages are eager already,
shorter ones gain nothing.
"""
_MODELS = ("flat", "split", "threads", "tasks", "chunks")
_FARTHEST = 8.0
"""Chunks beyond so many doublings of the eager limit count as at this distance."""


def layout_points(layouts: LayoutMap, settings: Sequence[Setting], family: str) -> Floats:
    """One row for each setting, shape (settings, columns): the columns times their weights."""
    nodes = layouts.space.facts.get("nodes", 1)
    count = int(nodes) if isinstance(nodes, int) else 1
    default = layouts.layout(DEFAULT).words
    default_limit = eager_limit(family, count, DEFAULT)
    rows = [
        _row(
            layouts.layout(setting).words,
            eager_limit(family, count, setting),
            default,
            default_limit,
            count,
        )
        for setting in settings
    ]
    weights = np.array(list(COLUMNS.values()))
    return np.asarray(np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS)) * weights)


def _row(
    words: Mapping[str, Value],
    limit: int,
    default: Mapping[str, Value],
    default_limit: int,
    nodes: int,
) -> list[float]:
    chunk, factor = words.get("chunk"), words.get("factor")
    values = dict.fromkeys(COLUMNS, 0.0)
    model = words.get("model", "flat")
    if model in _MODELS:
        values[str(model)] = 1.0
    values["several_nodes"] = float(nodes > 1)
    values["has_chunk"] = float(chunk is not None)
    values["chunk"] = _doublings(chunk, limit)
    values["eager"] = float(chunk is not None and float(chunk) < limit)
    values["chunk_of_default"] = _doublings(default.get("chunk"), default_limit)
    values["default_is_eager"] = float(
        "chunk" in default and float(default["chunk"]) < default_limit
    )
    values["has_factor"] = float(factor is not None)
    values["factor"] = _log2(factor)
    values["factor_of_default"] = _log2(default.get("factor"))
    values["workers"] = _log2(words.get("workers"))
    values["cut_x"] = _log2(words.get("cut_x"))
    values["waits_for_neighbours"] = float(words.get("barrier") == "neighbours")
    values["waits_for_all"] = float(words.get("barrier") == "global")
    return list(values.values())


def _doublings(size: Value | None, limit: int) -> float:
    if not isinstance(size, int | float) or size <= 0:
        return 0.0
    return max(-_FARTHEST, min(_FARTHEST, math.log2(size / limit)))


def _log2(value: Value | None) -> float:
    return math.log2(value) if isinstance(value, int | float) and value > 1 else 0.0
