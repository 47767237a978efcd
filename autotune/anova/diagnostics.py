"""Checks of the assumptions of the analysis, as warnings."""

from __future__ import annotations

import itertools
import math

import numpy as np

from autotune.anova.mixed import variance_shares
from autotune.anova.oneway import MIN_LEVEL, Values
from autotune.notes import Note

_DOMINANT = 0.5
_HEAVY = 10.0
_UNEQUAL = 1e-4
_MOST_ASSOCIATION = 0.5
_REPEAT_SHARE = 0.2
_LOST_SHARE = 0.2


def diagnose(values: Values, model: str, min_level: int = MIN_LEVEL) -> list[Note]:
    """The warnings, the most serious first; empty if the assumptions hold."""
    return [
        *_too_little(values, min_level),
        *_dominant_cell(values),
        *_repeated_settings(values, model),
        *_check_confounding(values),
        *_heavy_tails(values, model),
        *_unequal(values, model),
        *_check_lost_rows(values),
    ]


def _too_little(values: Values, min_level: int) -> list[Note]:
    table = values.table
    notes = []
    poor = [name for name in table.names if (np.bincount(table.codes(name)) >= min_level).sum() < 2]
    if poor:
        notes.append(
            Note(
                "anova.few_levels",
                f"{len(poor)} of {len(table.names)} parameters have fewer than two levels with "
                f"{min_level} observations and are not tested: measure more settings",
                {"parameters": poor},
            )
        )
    if values.left_out:
        notes.append(
            Note(
                "anova.cells_left_out",
                f"{len(values.left_out)} of {len(values.left_out) + len(table.cells)} cells "
                "have no possible gain and are left out of this response; --response log uses "
                "all",
                {"cells": list(values.left_out)},
            )
        )
    return notes


def _dominant_cell(values: Values) -> list[Note]:
    """One cell with most of the variance: the results then describe this cell."""
    table = values.table
    if len(table.cells) < 3:
        return []
    squares = (values.y - values.y.mean()) ** 2
    shares = np.bincount(table.blocks, weights=squares, minlength=len(table.cells))
    total = float(shares.sum())
    worst = int(np.argmax(shares))
    if total <= 0 or shares[worst] / total < _DOMINANT:
        return []
    key = list(table.cells)[worst]
    return [
        Note(
            "anova.dominant_cell",
            f"cell {key} has {shares[worst] / total:.0%} of the variance, so the results "
            "are mostly about this cell (its gain is small, or its slow settings are very "
            "slow); --response log weighs the cells more evenly",
            {"cell": key, "share": float(shares[worst]) / total},
        )
    ]


def _repeated_settings(values: Values, model: str) -> list[Note]:
    if model == "mixed":
        return []
    share = variance_shares(values).of_setting
    if share < _REPEAT_SHARE or len(values.table.cells) < 2:
        return []
    return [
        Note(
            "anova.repeated_settings",
            f"{share:.0%} of the variance belongs to settings that were run in several "
            "cells, so rows are not independent and this model finds too many effects; "
            "--model mixed accounts for it",
            {"share": share},
        )
    ]


def _check_confounding(values: Values) -> list[Note]:
    """Parameters that were changed together, so that their effects cannot be separated."""
    table = values.table
    _, first = np.unique(table.units, return_index=True)
    codes = {name: table.codes(name)[first] for name in table.names}
    pairs = []
    for a, b in itertools.combinations(table.names, 2):
        strength = _cramer(codes[a], codes[b])
        if strength > _MOST_ASSOCIATION:
            pairs.append((strength, a, b))
    if not pairs:
        return []
    strength, a, b = max(pairs)
    more = f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    return [
        Note(
            "anova.confounded",
            f"{a} and {b} were mostly changed together (association {strength:.2f}{more}): "
            "an effect of one is attributed to both",
            {"parameters": [a, b], "association": strength, "pairs": len(pairs)},
        )
    ]


def _cramer(a: np.typing.NDArray[np.int_], b: np.typing.NDArray[np.int_]) -> float:
    """Bias-corrected Cramer's V of two columns of codes, 0 to 1."""
    n = a.size
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(table, (a, b), 1.0)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    rows, columns = table.shape
    if min(rows, columns) < 2 or n < 3:
        return 0.0
    expectation = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = float(((table - expectation) ** 2 / expectation).sum()) / n
    phi2 = max(phi2 - (rows - 1) * (columns - 1) / (n - 1), 0.0)
    room = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return math.sqrt(phi2 / room) if room > 0 else 0.0


def _heavy_tails(values: Values, model: str) -> list[Note]:
    from scipy import stats

    if model == "rank" or values.y.size < MIN_LEVEL or float(np.ptp(values.y)) == 0:
        return []
    kurtosis = float(stats.kurtosis(values.y))
    if kurtosis < _HEAVY:
        return []
    return [
        Note(
            "anova.heavy_tail",
            f"the response has a heavy tail (excess kurtosis {kurtosis:.0f}): a few very "
            "slow settings determine the means; compare with --model rank",
            {"kurtosis": kurtosis},
        )
    ]


def _unequal(values: Values, model: str) -> list[Note]:
    """Factors whose levels have different variances (Brown-Forsythe)."""
    from scipy import stats

    if model == "rank":
        return []
    table, names = values.table, []
    for name in table.names:
        codes = table.codes(name)
        groups = [values.y[codes == level] for level in np.unique(codes)]
        groups = [g for g in groups if g.size >= MIN_LEVEL]
        if len(groups) < 2 or all(float(np.ptp(g)) == 0 for g in groups):
            continue
        if stats.levene(*groups, center="median").pvalue < _UNEQUAL / len(table.names):
            names.append(name)
    if not names:
        return []
    return [
        Note(
            "anova.unequal_variances",
            f"levels of {', '.join(names[:3])}{' and others' if len(names) > 3 else ''} "
            "have unequal variances, so their F test is not exact; compare with --model "
            "rank",
            {"parameters": names},
        )
    ]


def _check_lost_rows(values: Values) -> list[Note]:
    lost_share = float((~values.table.rows["ok"].to_numpy(dtype=bool)).mean())
    if lost_share < _LOST_SHARE:
        return []
    return [
        Note(
            "anova.lost_rows",
            f"{lost_share:.0%} of the rows failed or were stopped as too slow; they count with "
            "their time limit, so the means of the levels that cause it are too good",
            {"share": lost_share},
        )
    ]
