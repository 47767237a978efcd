"""The choice of one setting for a class of programs, from recorded runs.

There are two methods: the setting that the analysis of variance recommends, and the measured
setting with the best mean share among those that slow no program. Each method is judged on programs
without a part in its choice, and the better one is used. If neither beats the default there, the
answer is the default.

:func:`mean_gain` computes the mean gain over several programs, with an interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.anova.classwide_result import ProgramEvidence
from autotune.anova.factors import FactorOptions, chosen_setting, judge_factors
from autotune.anova.oneway import respond
from autotune.anova.shrinkage import SettingEffects
from autotune.anova.table import RunTable
from autotune.errors import UsageError, WorkError
from autotune.notes import Note
from autotune.space import DEFAULT, Setting

BEST_OF = 80
"""Number of random settings of which BEST is the best (Pellegrini 1.7)."""
DRAWS = 10
"""BEST depends on the random draw, so its row is the mean over this many draws."""

CERTAIN = 2.33
"""A proof needs a mean log gain of more than this many standard errors."""

CAUTION = 1.645
"""A setting that is slower on a cell by this many standard errors is not chosen. Suspected harm is
avoided; harm is counted only if it is certain."""

BEST_SINGLE = "best single"
"""Name of the row with the best single setting in hindsight."""

Method = Callable[[RunTable, SettingEffects, np.random.Generator], Setting]


@dataclass(frozen=True)
class ClassRow:
    """One method of choosing, with its score.

    ``share``: mean share on the cells that the setting was chosen on; ``held_out``: mean share on
    programs left out of the choice, None with only one program. ``slower``: number of cells on
    which ``setting`` is slower than the default by more than the noise; ``held_out_slower``: the
    same over cells of held-out programs, each with the setting chosen without its program, None if
    ``held_out`` is None. For random methods both are means over the draws. ``measured``: share of
    the figures from runs instead of the model.
    """

    name: str
    setting: Setting | None
    share: float
    held_out: float | None
    slower: float
    held_out_slower: float | None
    measured: float
    z: float = 0.0
    """Mean log gain in standard errors, over the cells of ``held_out``, else of ``share``."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "setting": None if self.setting is None else self.setting.to_json(),
            "share": self.share,
            "held_out_share": self.held_out,
            "slower_cells": self.slower,
            "held_out_slower_cells": self.held_out_slower,
            "measured": self.measured,
            "z": self.z,
        }


@dataclass(frozen=True)
class Choice:
    """``method``: "anova", "direct" or "default"; ``rows``: all methods and the references.

    ``by_effect``: parameters of the setting, first those that seem to do least.
    """

    method: str
    setting: Setting
    why: str
    rows: tuple[ClassRow, ...]
    warnings: tuple[Note, ...]
    by_effect: tuple[str, ...] = ()


def choose(table: RunTable, options: FactorOptions, seed: int = 0) -> Choice:
    """The setting for all cells of ``table``.

    Raises UsageError if no setting was run on every cell.
    """
    effects = SettingEffects(table)
    if not effects.everywhere:
        raise UsageError(
            f"{table.origin}: no setting was run on every one of its {len(table.cells)} "
            "cells; class-wide tuning needs one list of settings for all cells (kind "
            "explore, or grids of one space)",
            code="classwide.no_common_setting",
        )
    apps = sorted({place.app for place in table.cells.values()})
    ways: dict[str, Method] = {
        "anova": lambda t, w, r: anova_setting(t, options),
        "direct": lambda t, w, r: direct_setting(t, w),
    }
    rows = [_row(name, way, table, effects, apps, seed) for name, way in ways.items()]
    none = None if len(apps) < 2 else 0.0
    default = ClassRow("default", DEFAULT, 0.0, none, 0.0, none, 1.0)
    every = [
        default,
        *rows,
        _random_row(table, effects, apps, seed),
        _best_row(table, effects, apps, seed),
        _hindsight(table, effects),
    ]
    method, setting, why = _decide(rows, apps, effects)
    warnings = [*_warnings(table, rows, apps, method), *filter(None, [table.unguarded])]
    order = _by_effect(setting, effects)
    return Choice(method, setting, why, tuple(every), tuple(warnings), order)


def _by_effect(setting: Setting, effects: SettingEffects) -> tuple[str, ...]:
    """The parameters of a setting, first those without which the rest seems to gain most."""
    cells = list(effects.table.cells)

    def merit(name: str) -> tuple[float, float]:
        return effects.merit(setting.without(name), cells)

    return tuple(sorted(setting, key=merit, reverse=True))


def anova_setting(table: RunTable, options: FactorOptions) -> Setting:
    """The setting that the analysis of variance recommends; the default if no cell can gain."""
    try:
        return chosen_setting(judge_factors(respond(table, "gain"), options))
    except WorkError:
        return DEFAULT


def direct_setting(table: RunTable, effects: SettingEffects) -> Setting:
    """The measured setting with the best mean share among those that slow no cell."""
    cells = list(table.cells)
    harmless = [s for s in effects.everywhere if not effects.slower(s, cells, CAUTION)]
    best = max(harmless, key=lambda s: effects.merit(s, cells), default=DEFAULT)
    return best if effects.mean_share(best, cells) > 0 else DEFAULT


def _row(
    name: str, way: Method, table: RunTable, effects: SettingEffects, apps: Sequence[str], seed: int
) -> ClassRow:
    cells = list(table.cells)
    setting = way(table, effects, np.random.default_rng(seed))
    held_share, held_slower, z = _held_out(way, table, effects, apps, seed)
    if held_share is None:
        z = effects.certainty([(cell, setting) for cell in cells])
    slower = float(len(effects.slower(setting, cells)))
    measured_share = statistics.fmean(effects.value(cell, setting).measured for cell in cells)
    share = effects.mean_share(setting, cells)
    return ClassRow(name, setting, share, held_share, slower, held_slower, measured_share, z)


def _held_out(
    way: Method, table: RunTable, effects: SettingEffects, apps: Sequence[str], seed: int
) -> tuple[float | None, float | None, float]:
    """Mean share on each program if the setting is chosen on the others; the number of cells slower
    than the default there; the mean log gain in standard errors.

    Programs without a possible gain count only for the slower cells.
    """
    if len(apps) < 2:
        return None, None, 0.0
    shares, slower, pairs = [], 0, []
    for app in apps:
        others = table.where(lambda place, app=app: place.app != app)  # type: ignore[misc]
        setting = way(others, effects.on(others), np.random.default_rng(seed))
        out = [key for key, place in table.cells.items() if place.app == app]
        slower += len(effects.slower(setting, out))
        pairs += [(cell, setting) for cell in out]
        if any(not table.best[cell].null for cell in out):
            shares.append(effects.mean_share(setting, out))
    share = statistics.fmean(shares) if shares else 0.0
    return share, float(slower), effects.certainty(pairs)


def _random_row(
    table: RunTable, effects: SettingEffects, apps: Sequence[str], seed: int
) -> ClassRow:
    """RAND: the mean share of a random setting, averaged over all measured ones."""
    cells, settings = list(table.cells), effects.everywhere
    share = statistics.fmean(effects.mean_share(s, cells) for s in settings)
    slower = statistics.fmean(len(effects.slower(s, cells)) for s in settings)
    # A random setting is chosen without data, so every program is a held-out one.
    held_row = (share, slower) if len(apps) > 1 else (None, None)
    return ClassRow("rand", None, share, held_row[0], slower, held_row[1], 1.0)


def _best_row(table: RunTable, effects: SettingEffects, apps: Sequence[str], seed: int) -> ClassRow:
    """BEST: of 80 random settings the one with the largest measured mean gain."""
    rows = []
    for draw in range(DRAWS):
        rows.append(_row("best", best_drawn, table, effects, apps, seed + draw))
        if len(effects.everywhere) <= BEST_OF:
            break
    held_shares = [row.held_out for row in rows if row.held_out is not None]
    hurt = [row.held_out_slower for row in rows if row.held_out_slower is not None]
    return ClassRow(
        "best",
        rows[0].setting if len(rows) == 1 else None,
        statistics.fmean(row.share for row in rows),
        statistics.fmean(held_shares) if held_shares else None,
        statistics.fmean(row.slower for row in rows),
        statistics.fmean(hurt) if hurt else None,
        1.0,
    )


def best_drawn(table: RunTable, effects: SettingEffects, rng: np.random.Generator) -> Setting:
    """BEST of the thesis: of 80 settings drawn from the measured ones, the one with the largest
    mean gain in the runs."""
    settings = effects.everywhere
    count = min(BEST_OF, len(settings))
    sample = [settings[int(i)] for i in rng.choice(len(settings), count, replace=False)]

    def mean(setting: Setting) -> float:
        return statistics.fmean(effects.raw_gain(cell, setting) for cell in table.cells)

    return max(sample, key=mean)


def _hindsight(table: RunTable, effects: SettingEffects) -> ClassRow:
    """The best single setting with all runs known, even if it slows a program: the upper bound."""
    cells = list(table.cells)
    best = max(effects.everywhere, key=lambda s: effects.merit(s, cells))
    slower = float(len(effects.slower(best, cells)))
    return ClassRow(BEST_SINGLE, best, effects.mean_share(best, cells), None, slower, None, 1.0)


def _decide(
    rows: Sequence[ClassRow], apps: Sequence[str], effects: SettingEffects
) -> tuple[str, Setting, str]:
    cells = list(effects.table.cells)

    def score(row: ClassRow) -> float:
        return row.share if row.held_out is None else row.held_out

    usable = [row for row in rows if row.setting is not None and row.setting != DEFAULT]
    # A good mean does not justify a setting that slows a program, held out or not.
    harmless = [
        row
        for row in usable
        if row.setting
        and not row.held_out_slower
        and not effects.slower(row.setting, cells, CAUTION)
    ]
    good = [row for row in harmless if score(row) > 0 and row.z > CERTAIN]
    if not good:
        return "default", DEFAULT, _why_none(usable)
    best = max(good, key=score)
    where = "on programs left out" if len(apps) > 1 else "on the only program"
    assert best.setting is not None
    return best.name, best.setting, f"best {where}: {score(best):.0%} of the best known gain"


def _why_none(usable: Sequence[ClassRow]) -> str:
    why = "no setting is certainly better than the default over the class without slowing a program"
    hurt = [f"{row.name}: {row.held_out_slower:.0f}" for row in usable if row.held_out_slower]
    if hurt:
        why += f" (cells of programs left out that are slower: {', '.join(hurt)})"
    return why


def _warnings(
    table: RunTable, rows: Sequence[ClassRow], apps: Sequence[str], method: str
) -> list[Note]:
    notes = []
    if len(apps) < 2:
        words = "the class has only one program, so the gain on other programs is unknown"
        notes.append(Note("classwide.one_program", words))
    null = sum(best.null for best in table.best.values())
    if null:
        notes.append(
            Note(
                "classwide.no_gain",
                f"{null} of {len(table.cells)} cells have no possible gain; there the setting "
                "can only do harm, which the proof checks",
                {"cells": len(table.cells), "without_gain": null},
            )
        )
    for row in rows:
        if row.name == method and row.measured < 1:
            notes.append(
                Note(
                    "classwide.modelled",
                    f"the setting was run on {row.measured:.0%} of the cells; its figures for the "
                    "others come from a model until it is measured",
                    {"measured": row.measured},
                )
            )
    return notes


@dataclass(frozen=True)
class MeanGain:
    """Mean of T_default / T - 1 over programs, with the ends of its 95 % interval.

    ``hi`` is infinite where the interval of a program has no upper end.
    """

    gain: float
    lo: float
    hi: float


def mean_gain(rows: Sequence[ProgramEvidence]) -> MeanGain | None:
    """The mean of the rows' gains; None without rows, or if one of them has no interval.

    The interval is computed from the intervals of the rows (MOVER; Zou and Donner, Statistics in
    Medicine 27, 2008). The programs are independent, so the mean of k gains lies below its estimate
    by at most the root of the sum of squares of (gain - lo), divided by k. The intervals of the
    rows hold at all looks together, so that of the mean holds at any look at which programs
    stopped. For one program it is that program's interval.
    """
    gains, lower, upper = [], [], []
    for row in rows:
        if row.gain is None or row.lo is None:
            return None
        gains.append(row.gain)
        lower.append(row.gain - row.lo)
        upper.append(math.inf if row.hi is None else row.hi - row.gain)
    if not gains:
        return None
    middle = statistics.fmean(gains)
    below, above = (math.hypot(*arms) / len(gains) for arms in (lower, upper))
    return MeanGain(middle, middle - below, middle + above)
