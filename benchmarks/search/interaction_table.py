"""Scores of strategies where effects interact, and their differences to a peer.

    python -m benchmarks.search interactions [--held-out] [--spaces DIR] [--strategy NAME ...]

Each strategy searches each landscape with ten seeds, by ask and tell. The score after n evaluations
is (S_random - F) / (S_random - S_opt): F is the time of the setting that it names (the default's at
most), S_random the exact expectation of the best of n random settings. 0 is random, 1 the best. A
score counts as -1 at least: else one landscape on which random search is all but perfect would
outweigh the others. ``--spaces`` adds the recorded spaces of a folder.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import positive
from benchmarks.search.contestants import maker
from benchmarks.search.interactions import (
    FAMILIES,
    LANDSCAPES,
    KnownLand,
    landscape,
    recorded,
    recorded_names,
)
from benchmarks.search.landscapes import Land
from benchmarks.search.stored_searches import Search, named_by
from benchmarks.search.tables import Apart
from runner.files import write_atomically

MARKS = (10, 15, 25, 50, 100, 200)
SEEDS = 10
PEER = "optuna-tpe:unordered"
STRATEGIES = ("auto", "ga", "ga:thesis", "random", PEER)
RECORDED = "recorded"
_WORST = -1.0

Source = tuple[Callable[..., KnownLand], Callable[..., Land], tuple[object, ...]]
"""The maker of a known landscape, that of the landscape alone, and the arguments of both."""


def main(words: Sequence[str]) -> int:
    """Print a table for each group of landscapes, and for all; raises UsageError."""
    options = _arguments().parse_args(words)
    logging.disable(logging.WARNING)  # Peers print a message for every trial.
    names = list(dict.fromkeys([*options.strategy, options.against]))
    for name in names:
        maker(name)
    groups: dict[str, list[Source]] = {
        family: [
            (landscape_of, _land, (family, number, options.held_out))
            for number in range(LANDSCAPES)
        ]
        for family in options.family
    }
    if options.spaces:
        folder = Path(options.spaces)
        groups[RECORDED] = [
            (recorded_of, _recorded_land, (str(folder), name)) for name in recorded_names(folder)
        ]
    scores: dict[str, dict[str, np.ndarray]] = {}
    for group, sources in groups.items():
        scores[group] = {
            name: _scores(name, sources, options.seeds, options.jobs) for name in names
        }
        print(_table(group, scores[group], options.against), end="\n\n", flush=True)
    if len(groups) > 1:
        whole = {n: np.concatenate([scores[group][n] for group in groups]) for n in names}
        print(_table("all", whole, options.against), flush=True)
    if options.json:
        data = {
            "marks": MARKS,
            "held_out": options.held_out,
            "scores": {g: {n: s.tolist() for n, s in row.items()} for g, row in scores.items()},
        }
        write_atomically(Path(options.json), json.dumps(data))
    return 0


def landscape_of(family: str, number: int, held_out: bool, seed: int) -> KnownLand:
    """The landscape of a family, the same for each seed."""
    return landscape(family, number, held_out=held_out)


def recorded_of(folder: str, name: str, seed: int) -> KnownLand:
    """The recorded space with the default of this seed."""
    return recorded(Path(folder), name, seed)


def _land(family: str, number: int, held_out: bool, seed: int) -> Land:
    return landscape_of(family, number, held_out, seed).land


def _recorded_land(folder: str, name: str, seed: int) -> Land:
    return recorded_of(folder, name, seed).land


def _scores(name: str, sources: Sequence[Source], seeds: int, jobs: int) -> np.ndarray:
    """Scores of one strategy by landscape, seed and mark."""
    rows = [
        (known, Search(name, land, (*arguments, seed), seed, MARKS))
        for known, land, arguments in sources
        for seed in range(seeds)
    ]
    named = named_by([search for _, search in rows], "interactions", jobs)
    scores = [
        [
            max(known(*search.arguments).score(setting, mark), _WORST)
            for setting, mark in zip(settings, MARKS, strict=True)
        ]
        for (known, search), settings in zip(rows, named, strict=True)
    ]
    return np.array(scores).reshape(len(sources), seeds, len(MARKS))


def _table(group: str, scores: dict[str, np.ndarray], against: str) -> str:
    lines = [f"{group}: score (0: random search, 1: the best)"]
    lines.append(f"{'evaluations':21}" + "".join(f"{mark:>7}" for mark in MARKS))
    for name, own in scores.items():
        lines.append(f"{name:21}" + "".join(f"{s:7.2f}" for s in own.mean(axis=(0, 1))))
    lines.append(f"less {against} (95 % interval over {len(scores[against])} landscapes)")
    for name, own in scores.items():
        if name == against:
            continue
        lines.append(name)
        for part in (MARKS[:3], MARKS[3:]):
            cells = [_difference(own, scores[against], MARKS.index(mark)) for mark in part]
            lines.append("".join(f"{cell:26}" for cell in cells).rstrip())
    return "\n".join(lines)


def _difference(own: np.ndarray, other: np.ndarray, mark: int) -> str:
    seen = Apart.of((own - other)[:, :, mark].tolist())
    low, high = seen.elsewhere
    return f"{MARKS[mark]:>3}: {seen.mean:+.2f} ({low:+.2f}..{high:+.2f})"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search interactions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--family", nargs="*", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="the landscapes for final figures, on which no strategy is developed",
    )
    parser.add_argument("--spaces", metavar="DIR", help="a folder of recorded spaces")
    parser.add_argument("--strategy", nargs="+", default=list(STRATEGIES), metavar="NAME[:PRESET]")
    parser.add_argument("--against", default=PEER, metavar="NAME", help=f"default: {PEER}")
    parser.add_argument("--seeds", type=positive, default=SEEDS)
    parser.add_argument("--jobs", type=positive, default=1, help="processes (a core each)")
    parser.add_argument("--json", metavar="FILE", help="all scores by landscape, seed and mark")
    return parser
