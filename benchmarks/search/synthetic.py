"""The function that peers were measured on: gap to the optimum after 50, 100 and 200 trials."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.strategies import Observation
from benchmarks.common import report
from benchmarks.search.contestants import Make, maker
from benchmarks.search.landscapes import Land, additive
from benchmarks.search.peers import is_peer

MARKS = (50, 100, 200)
FUNCTION = 12
TARGETS = (7.0, 5.0, 2.0)


def gaps(names: Sequence[str], seeds: int, json: str | None) -> int:
    """Print T / T_best - 1 of the best setting so far in per cent, as means over the seeds.

    There is no noise, and the default is one setting among others, so the strategies get each trial
    directly.
    """
    land = additive(FUNCTION)
    rows: dict[str, Any] = {}
    print(f"{'':14}" + "".join(f"{f'gap@{m}':>9}" for m in MARKS))
    for name in names:
        try:
            make = maker(name)
        except UsageError as error:
            if not is_peer(name):
                raise
            print(f"{name:14} {error}")
            continue
        rows[name] = np.mean([_course(land, make, seed) for seed in range(seeds)], axis=0).tolist()
        print(f"{name:14}" + "".join(f"{g:9.2f}" for g in rows[name]), flush=True)
    print(f"{'target':14}" + "".join(f"{g:9.2f}" for g in TARGETS))
    if json:
        report("search synthetic", {"gaps": rows, "seeds": seeds, "targets": TARGETS}, json)
    print(f"{seeds} seeds; a strategy that ends by itself keeps its best", file=sys.stderr)
    return 0


def _course(land: Land, make: Make, seed: int) -> list[float]:
    strategy = make(land.space, seed, (), MARKS[-1])
    best, named = 1.0, DEFAULT
    found = []
    for number in range(MARKS[-1]):
        proposal = strategy.ask()
        if proposal is None:
            break
        ratio = land.truth(proposal.setting)
        strategy.tell(Observation(number, proposal.setting, ratio, "ok", proposal.attrs))
        if ratio < best:
            best, named = ratio, proposal.setting
        found.append(_gap(land, named))
    found += [_gap(land, named)] * (MARKS[-1] - len(found))
    return [found[mark - 1] for mark in MARKS]


def _gap(land: Land, setting: Setting) -> float:
    return 100 * (land.truth(setting) / land.best - 1)
