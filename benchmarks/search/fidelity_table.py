"""Machine seconds of searches with and without cheap runs, on the families of landscapes.

    python -m benchmarks.search fidelity [--family F ...] [--strategy NAME ...] [--full-s S]

The cheap form of a landscape takes a share of the time of the full one; launching takes the same
time in both. It scatters half as much again. Its times are like the full ones (``agrees``); or half
of the parameters (``half``) or all (``disagrees``) have effects in it that are drawn anew from all
effects of the landscape.

The table has machine seconds until 95 % of the true gain is reached for good, as the mean over all
searches; one that does not reach it within the budget counts with the whole budget. ``reached`` is
the share of searches that do. The mean share of the gain is that named at the end of the budget,
which counts a cheap run by its time. Searches with and without cheap runs have the same landscapes
and seeds.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import multiprocessing
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.study.simulation import OUTSIDE_S
from benchmarks.common import commit, positive, table
from benchmarks.search.contestants import maker
from benchmarks.search.families import FAMILIES, LANDSCAPES, landscape
from benchmarks.search.landscapes import Land
from benchmarks.search.replayed_search import follow
from runner.files import write_atomically

WITHOUT = "without"
REDRAWN = {"agrees": 0.0, "half": 0.5, "disagrees": 1.0}
"""Share of the parameters whose effects in the cheap form are drawn anew."""
ENOUGH = 0.95
_SCATTER = 1.5
_WORST = -1.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """What all searches of the table have in common; seconds are those of the default."""

    runs: int
    full_s: float
    share: float

    @property
    def budget_s(self) -> float:
        """Machine seconds of the whole budget."""
        return self.runs * (self.full_s + OUTSIDE_S)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One search: seconds to 95 %, share of the gain at the end, settings screened out."""

    seconds: float
    share: float
    screened: int
    switched_off: bool


Search = tuple[str, str, int, int, str, Plan]
"""Strategy, family, number of the landscape, seed, form, plan."""


def main(words: Sequence[str]) -> int:
    """Print a table for each family; raises UsageError for a wrong argument."""
    given = _arguments().parse_args(words)
    if not (0 < given.share < 1 and given.full_s > 0):
        raise UsageError(
            f"--share {given.share}, --full-s {given.full_s}: expected a share, and seconds",
            code="benchmark.plan",
        )
    plan = Plan(given.runs, given.full_s, given.share)
    print(f"commit {commit() or 'unknown'}; {given.landscapes} landscapes, {given.seeds} seeds")
    print(f"{plan.runs} runs of {plan.full_s:g} s; cheap runs take {plan.share:g} of that\n")
    found: dict[str, list[dict[str, Any]]] = {}
    for name in given.strategy:
        maker(name)
    with multiprocessing.get_context("fork").Pool(given.jobs) as pool:
        for family in given.family:
            rows = []
            for name, form in itertools.product(given.strategy, (WITHOUT, *REDRAWN)):
                searches = [
                    (name, family, number, seed, form, plan)
                    for number in range(given.landscapes)
                    for seed in range(given.seeds)
                ]
                rows.append(_row(name, form, pool.map(play, searches), plan))
            found[family] = rows
            print(family)
            table([_cells(row) for row in rows])
            print(flush=True)
    if given.json:
        data = {"plan": dataclasses.asdict(plan), "rows": found}
        write_atomically(Path(given.json), json.dumps(data))
    return 0


def play(search: Search) -> Outcome:
    """One search."""
    name, family, number, seed, form, plan = search
    land = dataclasses.replace(landscape(family, number), default_s=plan.full_s)
    cheap = None if form == WITHOUT else cheap_form(land, REDRAWN[form], number, plan.share)
    strategy = maker(name)(land.space, seed, (), plan.runs)
    course = follow(land, strategy, seed, plan.runs, cheap)
    named = course.named[-1][2] if course.named else Setting({})
    return Outcome(
        course.seconds_to(ENOUGH),
        max(land.share(named), _WORST),
        course.screened,
        course.switched_off,
    )


def cheap_form(land: Land, redrawn: float, number: int, share: float) -> Land:
    """A landscape of the same space whose runs take ``share`` of the time.

    ``redrawn`` is the share of the parameters with other effects; ``number`` seeds them.
    """
    rng = np.random.default_rng([3002, number])
    ratio = _other_effects(land, redrawn, rng) if redrawn else land.truth

    def draw(setting: Setting, runs: np.random.Generator) -> tuple[float, str]:
        noise, state = land.draw(DEFAULT, runs)
        known = ratio(setting)
        return (known * noise**_SCATTER, state) if math.isfinite(known) else (known, "failed")

    return dataclasses.replace(
        land,
        name=f"{land.name}, cheap",
        draw=draw,
        truth=ratio,
        default_s=share * land.default_s,
    )


def _other_effects(
    land: Land, redrawn: float, rng: np.random.Generator
) -> Callable[[Setting], float]:
    """The product of the ratios of single levels, some of them those of another level."""
    levels = [(p.name, c) for p in land.space.parameters for c in p.choices if c is not None]
    single = {level: land.truth(Setting(dict([level]))) for level in levels}
    pool = list(single.values())
    names = [p.name for p in land.space.parameters]
    drawn = set(rng.permutation(names)[: round(redrawn * len(names))].tolist())
    for level in levels:
        if level[0] in drawn:
            single[level] = pool[int(rng.integers(len(pool)))]

    def ratio(setting: Setting) -> float:
        return math.prod(single[level] for level in setting.items())

    return ratio


def _row(name: str, form: str, found: Sequence[Outcome], plan: Plan) -> dict[str, Any]:
    return {
        "strategy": name,
        "form": form,
        "seconds": statistics.mean(min(one.seconds, plan.budget_s) for one in found),
        "reached": statistics.mean(math.isfinite(one.seconds) for one in found),
        "share": statistics.mean(one.share for one in found),
        "screened": statistics.mean(one.screened for one in found),
        "off": statistics.mean(one.switched_off for one in found),
    }


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """A line of the table; shares in per cent."""
    shares = {name: f"{row[name]:.0%}" for name in ("reached", "share", "off")}
    numbers = {"seconds": f"{row['seconds']:.0f}", "screened": f"{row['screened']:.1f}"}
    return row | shares | numbers


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search fidelity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--strategy", nargs="+", default=["auto", "random"], metavar="NAME")
    parser.add_argument("--landscapes", type=positive, default=LANDSCAPES)
    parser.add_argument("--seeds", type=positive, default=3)
    parser.add_argument("--runs", type=positive, default=60, help="budget, in runs of the default")
    parser.add_argument("--full-s", type=float, default=10.0, help="seconds of the default")
    parser.add_argument("--share", type=float, default=0.1, help="share of a cheap run of that")
    parser.add_argument("--jobs", type=positive, default=1, help="processes (a core each)")
    parser.add_argument("--json", metavar="FILE")
    return parser
