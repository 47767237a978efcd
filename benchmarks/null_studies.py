"""A/A studies: how often the default is kept if no parameter of the space can matter.

Each study is one ``autotune search`` with its own seed, measured anew. The space has environment
variables that no program reads: all of them are launched, while a search leaves out MCA parameters
that it knows to be unused. With --store the same command continues an interrupted series; finished
studies are not repeated.

With ``--program varying`` each run prints something else: times, the date, process ids, random
numbers, and the lines of its ranks in another order. With ``heating`` and ``caching`` each run of a
setting that is not the default leaves the machine slower for the next one, by a helper that
computes on, or by what it wrote. A result "contradicted" is a stop by an objection; it is no
answer, and none is right for the first two programs.

Usage: python -m benchmarks.null_studies [--studies 40] [--trials 8] [--strategy random ...]
           [--program empty|varying|heating|caching | --app NAME [--input I]] [--most-false N]

Expected on a quiet machine, empty program, 20 trials: 10 to 20 s per study.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import beta, binom

from benchmarks.common import Answer, autotune, conclude, options, run_benchmark

EMPTY = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
VARYING = """
import datetime, os, random, sys, time
from mpi4py import MPI
comm, began = MPI.COMM_WORLD, time.time()
comm.Barrier()
words = f"rank {comm.rank} of {comm.size}: process {os.getpid()}, draws {random.random():.12f}"
lines = [words, f"rank {comm.rank}: seed {random.getrandbits(32)}", f"rank {comm.rank}: ready"]
random.shuffle(lines)
# The ranks write as they come, so their order differs, too.
print("\\n".join(lines), flush=True)
if comm.rank == 0:
    print(f"begun on {datetime.datetime.now():%a %b %d %H:%M:%S.%f %Y}")
    for step in range(random.randint(1, 5)):
        print(f"step {step}: residual {random.uniform(1e-9, 1e-7):.3e}")
    print(f"elapsed {time.time() - began:.6f} s, checksum 4242")
"""
BEGIN = """
import os, subprocess, sys, tempfile
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
sum(n * n for n in range(300_000))
comm.Barrier()
if comm.rank or not any(name.startswith("UNREAD_") for name in os.environ):
    sys.exit()
"""
HEATING = (
    BEGIN
    + """
# A helper outlives the run of any setting but the default, and computes for a second.
code = "import time; end = time.monotonic() + 1\\nwhile time.monotonic() < end: pass"
subprocess.Popen([sys.executable, "-c", code], start_new_session=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""
)
CACHING = (
    BEGIN
    + """
# Each run of any setting but the default leaves 256 MB to be written, and as much in the cache.
with tempfile.NamedTemporaryFile() as kept:
    for _ in range(256):
        kept.write(os.urandom(1 << 20))
    kept.flush()
"""
)
PROGRAMS = {"empty": EMPTY, "varying": VARYING, "heating": HEATING, "caching": CACHING}
DISTURBING = ("heating", "caching")
SPACE = """
description = "Environment variables that nothing reads"
""" + "".join(
    f"""
[parameters.UNREAD_{name}]
target = "env"
levels = [1, 2, 3, 4]
help = "Read by no program"
"""
    for name in "ABCDEF"
)
SHARE, RARE = 0.05, 0.015
"""A series fails if so many false winners occur in less than RARE of all series with SHARE."""
FIRST_SEED = 1000


def most_false(studies: int) -> int:
    """The largest number of false winners that a series may have; 5 of 40."""
    return int(binom.isf(RARE, studies, SHARE))


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Exact binomial interval."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, of - hits + 1))
    high = 1.0 if hits == of else float(beta.ppf(1 - tail, hits + 1, of - hits))
    return low, high


def judge(statuses: Counter[str], wanted: int, most: int, may_stop: bool = False) -> list[str]:
    """Faults of a series of A/A studies in words, from the statuses of their results.

    ``may_stop``: an objection to a setting is right, because it disturbs other runs.
    """
    wrong = []
    if statuses["recommended"] > most:
        wrong.append(f"{statuses['recommended']} false winners")
    if statuses["contradicted"] and not may_stop:
        wrong.append(f"{statuses['contradicted']} stops, which are no answers")
    if statuses.total() < wanted:
        wrong.append(f"only {statuses.total()} of {wanted} studies ended")
    return wrong


@dataclass
class Series:
    """The studies of one strategy."""

    strategy: str
    statuses: Counter[str] = field(default_factory=Counter)
    contradictions: list[Any] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    ending: str = ""
    """Why it ended before its time; "" if it did not."""

    def add(self, number: int, answer: Answer) -> bool:
        """Count one study; False if it has no result."""
        result = answer.result
        if answer.code != 0 or "status" not in result:
            self.ending = f"study {number + 1} ended with exit {answer.code}: {answer.text[-300:]}"
            return False
        self.statuses[result["status"]] += 1
        self.contradictions += result.get("contradictions", [])
        self.counts["runs"] += result["search_runs"] + result["confirmation_runs"]
        self.counts["runs_rejected"] += result["runs_rejected"]
        self.counts["drift_repeats"] += result.get("drift_repeats", 0)
        return True

    def figures(self) -> dict[str, Any]:
        false, done = self.statuses["recommended"], self.statuses.total()
        low, high = clopper_pearson(false, done) if done else (0.0, 1.0)
        return {
            "strategy": self.strategy,
            "studies": done,
            "false_winners": false,
            "stops": self.statuses["contradicted"],
            "false_share_95_percent": f"{low:.3f} .. {high:.3f}",
            "statuses": dict(self.statuses),
            "contradictions": self.contradictions,
            **{name: self.counts[name] for name in ("runs", "runs_rejected", "drift_repeats")},
        }


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument(
        "--store", help="results database; default: a new one, removed at the end"
    )
    arguments.add_argument("--studies", type=int, default=40, help="of each strategy")
    arguments.add_argument("--trials", type=int, default=8)
    arguments.add_argument("--app", help="default: an empty MPI program, timed as a whole")
    arguments.add_argument("--input")
    arguments.add_argument("--program", choices=PROGRAMS, default="empty")
    arguments.add_argument("--strategy", nargs="+", default=["random"])
    arguments.add_argument(
        "--most-false", type=int, help="false winners allowed for each strategy; default: by chance"
    )
    given = arguments.parse_args()
    if given.input and not given.app:
        arguments.error("--input needs --app")
    target = ["--app", given.app] if given.app else ["-n", "2"]
    target += ["--input", given.input] if given.input else []
    program = [] if given.app else ["--", sys.executable, "-c", PROGRAMS[given.program]]
    most = most_false(given.studies) if given.most_false is None else given.most_false
    every = [Series(name) for name in given.strategy]
    with tempfile.TemporaryDirectory() as scratch:
        store = given.store or f"{scratch}/results.db"
        space = Path(f"{store}.null.toml")
        space.write_text(SPACE)
        for number in range(given.studies):
            for series in every:
                if series.ending:
                    continue
                answer = autotune(
                    *("search", *target, "--space", f"{space}", "--strategy", series.strategy),
                    *("--seed", str(FIRST_SEED + number), "--trials", str(given.trials)),
                    *("--remeasure", "--store", store),
                    *("--params-file", f"{store}.{series.strategy}.{number}.conf"),
                    *given.guard, *program,
                )  # fmt: skip
                if series.add(number, answer):
                    words = f"{series.strategy}: {answer.result['status']}"
                    print(f"study {number + 1}/{given.studies}, {words}", file=sys.stderr)
    figures = {
        "program": f"{given.app} {given.input or ''}".strip() if given.app else given.program,
        "trials_per_study": given.trials,
        "series": [series.figures() for series in every],
    }
    failures = [
        f"{series.strategy}: {fault}"
        for series in every
        for fault in judge(series.statuses, given.studies, most, given.program in DISTURBING)
        + ([series.ending] if series.ending else [])
    ]
    bound = f"at most {most} false winners of {given.studies}, no stops, every study ended"
    for row in figures["series"]:
        print({name: row[name] for name in ("strategy", "statuses", "runs", "runs_rejected")})
    return conclude("A/A studies", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
