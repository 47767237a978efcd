"""A/A: whole studies in which no parameter of the space can matter; how often the default is kept.

Usage: python -m benchmarks.null_studies [--studies 20] [--trials 12] [--json FILE]
Resumable with --store: finished studies are not repeated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from scipy.stats import beta

from autotune.store import Store
from autotune.study.conduct import Conducting
from benchmarks.common import report, request

EMPTY = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"]


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Exact binomial interval."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, of - hits + 1))
    high = 1.0 if hits == of else float(beta.ppf(1 - tail, hits + 1, of - hits))
    return low, high


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--studies", type=int, default=20)
    arguments.add_argument("--trials", type=int, default=12)
    arguments.add_argument("--app", help="default: an empty MPI program, timed as a whole")
    arguments.add_argument("--input")
    arguments.add_argument("--strategy", default="random")
    arguments.add_argument("--store")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    found: Counter[str] = Counter()
    runs = rejected = 0
    with (
        tempfile.TemporaryDirectory() as place,
        Store.open(given.store or str(Path(place) / "results.db")) as store,
    ):
        for number in range(given.studies):
            wanted = request(
                app=given.app,
                program=None if given.app else EMPTY,
                ranks=None if given.app else 2, input_name=given.input, space="null",
                strategy=given.strategy, seed=1000 + number, trials=given.trials,
            )  # fmt: skip
            conducting = Conducting(wanted, store)
            result = conducting.finished()
            if result is None:
                with conducting as conductor:
                    result = conductor.run()
                store.set_result(conducting.study.id, result.status, result.to_json())
            found[result.status] += 1
            runs += result.search_runs + result.confirmation_runs
            rejected += result.runs_rejected
            print(f"study {number + 1}/{given.studies}: {result.status}", file=sys.stderr)
    false = found["recommended"]
    low, high = clopper_pearson(false, given.studies)
    report(
        "A/A studies",
        {
            "studies": given.studies,
            "trials_per_study": given.trials,
            "false_winners": false,
            "false_share_95_percent": f"{low:.3f} .. {high:.3f}",
            "statuses": dict(found),
            "runs": runs,
            "runs_rejected": rejected,
        },
        given.json,
    )


if __name__ == "__main__":
    main()
