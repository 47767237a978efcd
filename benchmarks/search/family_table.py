"""Shares of strategies on the families of synthetic landscapes, and their differences to a peer.

    python -m benchmarks.search families [--family F ...] [--held-out] [--strategy NAME ...]

Each strategy searches each landscape with three seeds, by ask and tell. The share is that of the
true gain which the setting named after 10, 15, 25, 45 and 100 runs has. A loss counts negative, as
-100 % at most: else one search on a landscape with a small gain would outweigh all the others.

Results are stored by the digest of the strategy's code and of the packages that it imports. A
second call plays only what has changed.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import positive
from benchmarks.search.contestants import maker
from benchmarks.search.families import FAMILIES, LANDSCAPES, SEEDS, landscape
from benchmarks.search.landscapes import Land
from benchmarks.search.stored_searches import Search, named_by
from benchmarks.search.tables import Apart
from runner.files import write_atomically

MARKS = (10, 15, 25, 45, 100)
PEER = "optuna-tpe:unordered"
STRATEGIES = ("auto", "ga", "ga:thesis", "random", "optuna-tpe:matched", PEER)
_DECISIVE = (15, 45)
_WORST = -1.0


def main(words: Sequence[str]) -> int:
    """Print a table for each family; raises UsageError for a wrong argument."""
    given = _arguments().parse_args(words)
    logging.disable(logging.WARNING)  # Peers print a message for every trial.
    names = list(dict.fromkeys([*given.strategy, given.against]))
    found: dict[str, dict[str, list[list[list[float]]]]] = {}
    for name in names:
        maker(name)
    for family in given.family:
        shares = {n: _shares(n, family, given.held_out, given.jobs) for n in names}
        found[family] = {n: s.tolist() for n, s in shares.items()}
        print(_table(family, shares, given.against, given.held_out), end="\n\n", flush=True)
    if given.json:
        data = {"marks": MARKS, "held_out": given.held_out, "shares": found}
        write_atomically(Path(given.json), json.dumps(data))
    return 0


def _shares(name: str, family: str, held_out: bool, jobs: int) -> np.ndarray:
    """Shares of one strategy by landscape, seed and mark, from -1 to 1."""
    lands = [landscape(family, number, held_out=held_out) for number in range(LANDSCAPES)]
    searches = [
        Search(name, _land, (family, number, held_out), seed, MARKS)
        for number in range(LANDSCAPES)
        for seed in range(SEEDS)
    ]
    shares = [
        [max(lands[number // SEEDS].share(setting), _WORST) for setting in named]
        for number, named in enumerate(named_by(searches, "families", jobs))
    ]
    return np.array(shares).reshape(LANDSCAPES, SEEDS, len(MARKS))


def _land(family: str, number: int, held_out: bool) -> Land:
    return landscape(family, number, held_out=held_out)


def _table(family: str, shares: dict[str, np.ndarray], against: str, held_out: bool) -> str:
    lines = [f"{family}{', held out' if held_out else ''}: share of the true gain, per cent"]
    title = "".join(f"{mark:>5}" for mark in MARKS)
    marks = " ".join(f"{f'at {mark} (95 %)':>16}" for mark in _DECISIVE)
    lines.append(f"{'runs':21}{title} {marks}")
    for name, own in shares.items():
        line = f"{name:21}" + "".join(f"{100 * s:5.0f}" for s in own.mean(axis=(0, 1)))
        if name != against:
            for mark in _DECISIVE:
                differences = (own - shares[against])[:, :, MARKS.index(mark)]
                seen = Apart.of(differences.tolist())
                low, high = (100 * bound for bound in seen.elsewhere)
                line += f" {f'{100 * seen.mean:+.0f} ({low:+.0f}..{high:+.0f})':>16}"
        lines.append(line)
    lines.append(f"On the right: less {against}, the interval over {LANDSCAPES} landscapes.")
    return "\n".join(lines)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search families",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="the landscapes for final figures, on which no strategy is developed",
    )
    parser.add_argument("--strategy", nargs="+", default=list(STRATEGIES), metavar="NAME[:PRESET]")
    parser.add_argument("--against", default=PEER, metavar="NAME", help=f"default: {PEER}")
    parser.add_argument("--jobs", type=positive, default=1, help="processes (a core each)")
    parser.add_argument("--json", metavar="FILE", help="all shares by landscape, seed and mark")
    return parser
