"""The layouts that a study has tried: time and core-seconds of each, and which are Pareto-optimal.

Everything follows from the stored runs. The figures describe; only the proof decides.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autotune.errors import UsageError
from autotune.measurement.run_history import DEFAULT_KEY, RunHistory, history_of
from autotune.space import Setting, Space
from autotune.study.search_result import LayoutRow, Result
from autotune.study.search_study import SearchStudy
from autotune.targets.layout import Layout


@dataclass(frozen=True)
class TriedLayout:
    """A layout with its fastest setting.

    ``time_s`` is the median over its ``runs`` of the ratio to the default around each run, times
    the default's median. ``pareto``: no other layout is at least as good in time and in
    core-seconds, and better in one of them.
    """

    layout: Layout
    setting: Setting
    time_s: float
    runs: int
    pareto: bool = False

    @property
    def core_seconds(self) -> float:
        """Time multiplied by the number of cores that the layout uses."""
        return self.time_s * self.layout.cores

    @property
    def row(self) -> LayoutRow:
        """The part of a result's document."""
        return LayoutRow(
            ranks=self.layout.ranks,
            threads=self.layout.threads,
            workers=self.layout.workers,
            cores=self.layout.cores,
            time_s=self.time_s,
            core_s=self.core_seconds,
            runs=self.runs,
            pareto=self.pareto,
            setting=self.setting.to_json(),
        )


def require_layouts(space: Space) -> None:
    """Raise UsageError for a space whose settings all have the same layout."""
    if not space.resources:
        raise UsageError(
            f"--pareto compares layouts, but the space {space.name} has none to choose from "
            "(threads, processes, ranks or workers); name a space that has, such as --space hybrid",
            code="space.no_layouts",
        )


def tried_layouts(history: RunHistory, space: Space, cores: int) -> list[TriedLayout]:
    """The layouts of all settings with a valid run, the fastest first.

    ``cores`` is the number of cores that the settings may divide (``--ranks``).
    """
    values = history.default_values()
    if not values:
        return []
    level = statistics.median(values)
    fastest: dict[Layout, TriedLayout] = {}
    for key, ratios in _ratios(history).items():
        setting = Setting.parse(key)
        layout = Layout.of(cores, _resources(space, setting))
        candidate = TriedLayout(layout, setting, level * statistics.median(ratios), len(ratios))
        fastest_so_far = fastest.get(layout)
        if fastest_so_far is None or candidate.time_s < fastest_so_far.time_s:
            fastest[layout] = candidate
    rows = sorted(fastest.values(), key=lambda row: (row.time_s, row.core_seconds))
    return [replace(row, pareto=_optimal(row, rows)) for row in rows]


def layouts_of(search: SearchStudy, result: Result) -> list[TriedLayout]:
    """The layouts that the study of a result has tried, the fastest first."""
    history = history_of(search.store, search.store.find_study(result.study).id)
    return tried_layouts(history, search.space, search.target.ranks)


def _ratios(history: RunHistory) -> dict[str, list[float]]:
    """T / T_default of every valid run that counts, by setting."""
    ratios_by_key: dict[str, list[float]] = {}
    for entry in history.entries:
        if entry.counts and entry.record.valid:
            ratio = 1.0 if entry.key == DEFAULT_KEY else history.ratio(entry)
            if ratio is not None:
                ratios_by_key.setdefault(entry.key, []).append(ratio)
    return ratios_by_key


def _resources(space: Space, setting: Mapping[str, Any]) -> Mapping[str, str]:
    return space.launched(setting).get("resource", {})


def _optimal(row: TriedLayout, rows: Iterable[TriedLayout]) -> bool:
    own = (row.time_s, row.core_seconds)
    others = ((other.time_s, other.core_seconds) for other in rows)
    return not any(o != own and o[0] <= own[0] and o[1] <= own[1] for o in others)
