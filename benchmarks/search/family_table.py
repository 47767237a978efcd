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
import hashlib
import json
import logging
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from autotune.space import Setting
from benchmarks.common import positive
from benchmarks.search.code_digest import ROOT, code_digest, contestant_module
from benchmarks.search.contestants import maker
from benchmarks.search.direct_search import named_settings
from benchmarks.search.families import FAMILIES, LANDSCAPES, SEEDS, landscape
from benchmarks.search.tables import Apart
from runner import files
from runner.files import write_atomically

MARKS = (10, 15, 25, 45, 100)
PEER = "optuna-tpe:unordered"
STRATEGIES = ("auto", "ga", "ga:thesis", "random", "optuna-tpe:matched", PEER)
_DECISIVE = (15, 45)
_WORST = -1.0
_CODE = ("families", "direct_search")

Search = tuple[str, str, int, bool, int]
"""Strategy, family, number of the landscape, whether it is held out, seed."""


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
    searches = [
        (name, family, number, held_out, seed)
        for number in range(LANDSCAPES)
        for seed in range(SEEDS)
    ]
    place = _place(name)
    known = _read(place)
    missing = [search for search in searches if _key(search) not in known]
    if missing:
        print(f"{name}: {len(missing)} searches in {family}", file=sys.stderr, flush=True)
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            for search, named in zip(missing, pool.imap(_play, missing), strict=True):
                known[_key(search)] = named
                if search[-1] == SEEDS - 1:
                    _write(place, known)
    lands = [landscape(family, number, held_out=held_out) for number in range(LANDSCAPES)]
    shares = [
        [max(land.share(Setting(values)), _WORST) for values in known[_key(search)]]
        for search in searches
        for land in (lands[search[2]],)
    ]
    return np.array(shares).reshape(LANDSCAPES, SEEDS, len(MARKS))


def _play(search: Search) -> list[dict[str, object]]:
    name, family, number, held_out, seed = search
    land = landscape(family, number, held_out=held_out)
    strategy = maker(name)(land.space, seed, (), MARKS[-1])
    return [dict(setting) for setting in named_settings(land, strategy, seed, MARKS)]


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


def _place(name: str) -> Path:
    """The file of a strategy with its present code and that of the landscapes."""
    state = hashlib.sha256(f"{name} {MARKS} {code_digest(contestant_module(name))}".encode())
    for module in _CODE:
        state.update((ROOT / "benchmarks" / "search" / f"{module}.py").read_bytes())
    stored = f"{name.replace(':', '-')}-{state.hexdigest()[:16]}.json"
    return files.cache("benchmarks", "families") / stored


def _key(search: Search) -> str:
    _, family, number, held_out, seed = search
    return f"{family}{'-held' if held_out else ''}/{number}/{seed}"


def _read(place: Path) -> dict[str, list[dict[str, object]]]:
    return dict(json.loads(place.read_text())) if place.exists() else {}


def _write(place: Path, known: dict[str, list[dict[str, object]]]) -> None:
    """Store the searches beside those that another process may have stored since."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, json.dumps(_read(place) | known))


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
