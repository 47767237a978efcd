"""Which settings are run when: passes over a cell's settings, cut into blocks of bounded time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from autotune.datasets.plan import BLOCK_S, Plan, PlanCell
from autotune.datasets.replay import BAD_RUNS

DEFAULTS_FIRST = 3
"""Runs of the default at the beginning of a block; it is run again throughout, and at the end."""


@dataclass(frozen=True)
class Size:
    """How the passes over a cell's settings are cut: fixed before the first run, so that a
    continued campaign has the same blocks."""

    chunks: int
    passes: int

    @property
    def blocks(self) -> int:
        return self.chunks * self.passes


def size(plan: Plan, cell: PlanCell, settings: int) -> Size:
    """Blocks of at most ten minutes for a cell's ``settings`` (without the default)."""
    runs = settings * (1 + 1 / plan.default_every) + DEFAULTS_FIRST + 1
    # Slow settings take up to three times the default: a margin, not a bound.
    return Size(max(1, math.ceil(runs * cell.run_s * 1.25 / BLOCK_S)), plan.passes(cell))


def planned_runs(plan: Plan, settings: int, cut: Size) -> int:
    """Launches of a cell, the default's included, where every setting runs well."""
    per_block = DEFAULTS_FIRST + 1
    runs = settings * cut.passes
    if plan.kind == "explore":
        runs = settings + plan.more * min(2 * plan.best, settings)
    return round(runs * (1 + 1 / plan.default_every)) + per_block * cut.blocks


def of_block(
    plan: Plan, cell: str, cut: Size, block: int, indices: Sequence[int], runs: pd.DataFrame
) -> list[int]:
    """The settings of one block in their order, the default left out.

    ``indices`` are all of the cell, ``runs`` what earlier blocks measured: a setting that ended
    badly twice is known, and of an exploration only the chosen go on after the first pass.
    """
    number, chunk = divmod(block, cut.chunks)
    wanted = [index for index in indices if index != 0]
    if plan.kind == "explore" and number > 0:
        wanted = _chosen(plan, cell, wanted, runs[runs["block"] < cut.chunks])
    order = sorted(wanted)
    random.Random(f"{plan.seed}/{cell}/{number}").shuffle(order)
    bad = runs[(runs["state"] != "ok") & (runs["block"] < block)].groupby("setting").size()
    settled = {int(str(i)) for i, count in bad.items() if count >= BAD_RUNS}
    return [index for index in order[chunk :: cut.chunks] if index not in settled]


def _chosen(plan: Plan, cell: str, indices: list[int], first: pd.DataFrame) -> list[int]:
    """The best of the first pass and a random choice of the others."""
    good = first[first["setting"].isin(indices) & (first["state"] == "ok")]
    ranked = good.groupby("setting")["ratio"].median().sort_values(kind="stable").index
    best = [int(str(i)) for i in ranked[: plan.best]]
    others = sorted(set(indices) - set(best))
    count = min(plan.best, len(others))
    return best + random.Random(f"{plan.seed}/{cell}/others").sample(others, count)
