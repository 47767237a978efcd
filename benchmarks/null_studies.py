"""A/A studies: how often the default is kept if no parameter of the space can matter.

Each study is one ``autotune search`` in the space ``null`` with its own seed, measured anew. With
--store the same command continues an interrupted series; finished studies are not repeated.

Usage: python -m benchmarks.null_studies [--studies 40] [--trials 8] [--app NAME [--input I]]

Expected on a quiet machine, empty program: 20 to 30 s per study, 15 to 20 minutes for 40.
"""

from __future__ import annotations

import sys
from collections import Counter

from scipy.stats import beta

from benchmarks.common import autotune, conclude, options, run_benchmark, store_at

EMPTY = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"]
# With a true share of 5 %, six or more of 40 occur in 1.4 % of all series.
TOO_MANY = 6
BOUND = f"fewer than {TOO_MANY} false winners, every study ended"
FIRST_SEED = 1000


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Exact binomial interval."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, of - hits + 1))
    high = 1.0 if hits == of else float(beta.ppf(1 - tail, hits + 1, of - hits))
    return low, high


def judge(statuses: Counter[str], wanted: int) -> list[str]:
    """Faults of a series of A/A studies in words, from the statuses of their results."""
    wrong = []
    if statuses["recommended"] >= TOO_MANY:
        wrong.append(f"{statuses['recommended']} false winners")
    if statuses.total() < wanted:
        wrong.append(f"only {statuses.total()} of {wanted} studies ended")
    return wrong


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--studies", type=int, default=40)
    arguments.add_argument("--trials", type=int, default=8)
    arguments.add_argument("--app", help="default: an empty MPI program, timed as a whole")
    arguments.add_argument("--input")
    arguments.add_argument("--strategy", default="random")
    given = arguments.parse_args()
    if given.input and not given.app:
        arguments.error("--input needs --app")
    target = ["--app", given.app] if given.app else ["-n", "2"]
    target += ["--input", given.input] if given.input else []
    program = [] if given.app else ["--", *EMPTY]
    found: Counter[str] = Counter()
    runs = rejected = drift_repeats = 0
    stopped = ""
    with store_at(given.store) as store:
        for number in range(given.studies):
            answer = autotune(
                *("search", *target, "--space", "null", "--strategy", given.strategy),
                *("--seed", str(FIRST_SEED + number), "--trials", str(given.trials)),
                *("--remeasure", "--store", store, "--params-file", f"{store}.{number}.conf"),
                *given.guard, *program,
            )  # fmt: skip
            result = answer.result
            if answer.code != 0 or "status" not in result:
                stopped = f"study {number + 1} ended with exit {answer.code}: {answer.text[-300:]}"
                break
            found[result["status"]] += 1
            runs += result["search_runs"] + result["confirmation_runs"]
            rejected += result["runs_rejected"]
            drift_repeats += result.get("drift_repeats", 0)
            print(f"study {number + 1}/{given.studies}: {result['status']}", file=sys.stderr)
    false, done = found["recommended"], found.total()
    low, high = clopper_pearson(false, done) if done else (0.0, 1.0)
    figures = {
        "program": f"{given.app} {given.input or ''}".strip() if given.app else "empty",
        "studies": done,
        "trials_per_study": given.trials,
        "false_winners": false,
        "false_share_95_percent": f"{low:.3f} .. {high:.3f}",
        "statuses": dict(found),
        "runs": runs,
        "runs_rejected": rejected,
        "drift_repeats": drift_repeats,
    }
    failures = judge(found, given.studies) + ([stopped] if stopped else [])
    return conclude("A/A studies", BOUND, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
