"""The effect of one parameter as the studies of a results database measured it."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence

from autotune.parameters.measured_effect import LevelRatio, MeasuredEffect, StudyEffect
from autotune.space.setting import Setting
from autotune.store.model import DEFAULT_KEY, BestRuns
from autotune.store.store import Store

MOST_STUDIES = 200
"""Newest studies that are read."""


def measured_effect(store: Store, names: Collection[str]) -> MeasuredEffect:
    """What the newest studies of a database measured of a parameter; ``names`` are all its names in
    spaces."""
    numbers = store.studies_with(names)
    effects, recommended = [], 0
    for record in store.study_records(numbers[:MOST_STUDIES]):
        answer = (record.result or {}).get("recommended") or {}
        recommended += any(name in answer for name in names)
        levels = level_ratios(store.best(record.id, 2**31 - 1), names)
        if levels:
            app = record.key.app.name
            effects.append(StudyEffect(record.id, app, levels[0], levels[-1]))
    return MeasuredEffect(len(numbers), recommended, tuple(effects))


def level_ratios(runs: Sequence[BestRuns], names: Collection[str]) -> list[LevelRatio]:
    """The levels of a parameter by their ratio to the default, the fastest first; empty if the
    default was not measured."""
    default_s = next((one.median_s for one in runs if one.key == DEFAULT_KEY), None)
    if not default_s:
        return []
    ratios: dict[str, list[float]] = {}
    for one in runs:
        values: Mapping[str, object] = Setting.parse(one.key) if one.key != DEFAULT_KEY else {}
        value = next((str(values[name]) for name in names if name in values), None)
        if value is not None:
            ratios.setdefault(value, []).append(one.median_s / default_s)
    levels = [
        LevelRatio(v, statistics.median(several), len(several)) for v, several in ratios.items()
    ]
    return sorted(levels, key=lambda level: level.ratio)
