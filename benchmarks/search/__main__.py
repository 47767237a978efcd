"""Every strategy against the peers, on recorded grids and on functions with a known truth.

    python -m benchmarks.search                            functions, our own strategies
    python -m benchmarks.search --dataset NAME --split report --peers
    python -m benchmarks.search --fair                     all grids, peers also matched
    python -m benchmarks.search families                   three families of noisy landscapes
    python -m benchmarks.search interactions               four families with interactions
    python -m benchmarks.search fidelity                   these with and without cheap runs

docs/explanation/strategies.md says how strategies are scored and how peers are installed.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from autotune.datasets import load
from autotune.datasets.card import CARD
from autotune.errors import UsageError
from benchmarks.common import ROOT, commit, positive, report, run_benchmark
from benchmarks.search import family_table, fidelity_table, interaction_table
from benchmarks.search.checkpoint import Checkpoint
from benchmarks.search.contestants import TRACED, Rules, take_part
from benchmarks.search.landscapes import Case, fixed, grid, recordings, wide
from benchmarks.search.peers import MATCHED, peer_names
from benchmarks.search.picture import Contestants, draw
from benchmarks.search.predicted import predicted_settings
from benchmarks.search.replayed_search import MARKS
from benchmarks.search.tables import figures, pairs, printed, references

OURS = ("auto", "ga", "ga:thesis", "random")
FAIR = ("auto", "auto+no-favourite", "ga", "ga:thesis", "random", "random+no-repeats")
PROOFS = 300
"""Whole studies of a contestant on null landscapes, at least, that ``--fair`` makes."""
REPORTED = 100
"""First number of the functions for the report; those from 0 on served to design strategies."""


def main() -> int:
    """Print the tables; raises UsageError for a wrong argument."""
    if sys.argv[1:2] == ["families"]:
        return family_table.main(sys.argv[2:])
    if sys.argv[1:2] == ["interactions"]:
        return interaction_table.main(sys.argv[2:])
    if sys.argv[1:2] == ["fidelity"]:
        return fidelity_table.main(sys.argv[2:])
    given = _arguments().parse_args()
    if given.stored:
        stored = json.loads(Path(given.stored).read_text(encoding="utf-8"))
        _draw(stored["contestants"], given.picture or "search.svg")
        return 0
    logging.disable(logging.WARNING)  # Peers print a message for every trial.
    names = _names(given)
    if given.traced:
        names.insert(1, f"auto{TRACED}")
    cases = _cases(given)
    standings, absent = take_part(names, cases, _rules(given, cases))
    if given.fair:
        print(f"commit {commit() or 'unknown'}\n")
    known = {s.name: figures(s, cases, given.runs) for s in standings}
    apart = pairs(standings, cases, given.runs)
    print(printed(known, apart, standings[0].name, references(cases)))
    for name, reason in absent.items():
        print(f"{name}: {reason}")
    if given.picture:
        _draw(known, given.picture)
    if given.json:
        lands = [case.name for case in cases]
        ahead = {
            name: {mark: at.to_json() for mark, at in seen.items()} for name, seen in apart.items()
        }
        data = {"landscapes": lands, "contestants": known, "pairs": ahead, "absent": absent}
        with redirect_stdout(StringIO()):  # The tables above show the same figures.
            report("search", {**data, "load": os.getloadavg()[0], "seeds": given.seeds}, given.json)
    return 0


def _draw(contestants: Contestants, place: str) -> None:
    for path in draw(contestants, Path(place)):
        print(path)


def _names(given: argparse.Namespace) -> list[str]:
    """The contestants; of a fair comparison each peer as it comes and matched."""
    given.strategies = given.strategies or list(FAIR if given.fair else OURS)
    peers = list(peer_names()) if given.peers or given.fair else []
    if given.fair:
        peers = [name for peer in peers for name in (peer, f"{peer}{MATCHED}")]
    return [*given.strategies, *peers]


def _cases(given: argparse.Namespace) -> list[Case]:
    if given.fair and not given.dataset:
        folders = sorted(card.parent for card in (ROOT / "datasets").glob(f"*/{CARD}"))
        given.dataset = [f"{folder}" for folder in folders if load(folder).kind == "grid"]
    if given.dataset:
        foresee = predicted_settings(given.traced) if given.traced else None
        found = recordings(given.dataset, given.split, foresee)
        if given.blurred:
            if not found.blurred:
                raise UsageError(
                    "--blurred: the noise of none of these landscapes hides its gain",
                    code="benchmark.fails",
                )
            return found.blurred
        for name, reason in found.reasons.items():
            print(f"left out: {name}\n  {reason}")
        return found.clear
    if given.blurred:
        raise UsageError(
            "--blurred: name recordings with --dataset; functions are never left out",
            code="benchmark.fails",
        )
    first = REPORTED if given.split in (None, "report") else 0
    found = []
    numbers = range(first, first + 1000)
    gaining = (land for i in numbers if not (land := grid(i)).null)
    found += [fixed(next(gaining)) for _ in range(given.landscapes)]
    found += [fixed(grid(i, null=True)) for i in numbers[: given.landscapes // 2]]
    if given.wide:
        found += [fixed(wide(i)) for i in numbers[: given.landscapes // 2]]
    return found


def _rules(given: argparse.Namespace, cases: list[Case]) -> Rules:
    """Searches and runs of every contestant; stored results are valid for equal rules."""
    proofs = given.proofs
    if proofs is None:
        nulls = sum(case.null for case in cases)
        proofs = math.ceil(PROOFS / max(nulls, 1)) if given.fair else 10
    size = {"seeds": given.seeds, "runs": given.runs, "proofs": proofs}
    follows_from = {**size, "traced": given.traced, "cases": [case.name for case in cases]}
    folders = [load(name).folder for name in [*(given.dataset or ()), *(given.traced or ())]]
    kept = Checkpoint.of(folders, follows_from, given.anew)
    return Rules(given.seeds, given.runs, proofs, given.jobs, kept)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dataset", nargs="+", help="recorded grids, by name or folder")
    parser.add_argument(
        "--traced",
        nargs="+",
        metavar="DATASET",
        help="recordings that auto+traced has a model of, the program itself left out",
    )
    parser.add_argument("--split", choices=["design", "report"], help="which half; default: all")
    parser.add_argument(
        "--blurred", action="store_true", help="only the recorded grids left out for their noise"
    )
    parser.add_argument(
        "--strategies", nargs="+", metavar="NAME[:PRESET]", help=f"default: {' '.join(OURS)}"
    )
    parser.add_argument(
        "--fair",
        action="store_true",
        help=f"all grids of datasets/, each peer also matched, {PROOFS} proofs",
    )
    parser.add_argument("--peers", action="store_true", help="the peers that are installed, too")
    parser.add_argument("--seeds", type=positive, default=50)
    parser.add_argument("--runs", type=positive, default=MARKS[-1], help="search runs")
    parser.add_argument(
        "--proofs", type=int, help="whole studies per null landscape, --seeds at most; default: 10"
    )
    parser.add_argument("--landscapes", type=positive, default=10, help="how many functions")
    parser.add_argument("--wide", action="store_true", help="functions of 25 parameters, too")
    parser.add_argument("--jobs", type=positive, default=1, help="processes (a core each)")
    parser.add_argument("--anew", action="store_true", help="play again what was played before")
    parser.add_argument("--json", metavar="FILE", help="all figures")
    parser.add_argument(
        "--picture",
        metavar="FILE.svg",
        help="shares against search runs, and, in FILE-seconds.svg, against machine seconds",
    )
    parser.add_argument(
        "--from",
        dest="stored",
        metavar="FILE.json",
        help="draw the figures of an earlier --json; play nothing",
    )
    return parser


if __name__ == "__main__":
    run_benchmark(main)
