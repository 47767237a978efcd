"""False winners where runs disturb each other, and power: comparisons, proofs, whole studies.

The procedures are the real ones; only the launch is drawn (benchmarks.disturbances). "compare" is
`autotune compare`; "proof-1" and "proof-3" are the part of a study after its search, with so many
finalists; "ga" and "auto" are whole studies. A row is one procedure under one truth. It has exact
95 % bounds of the share of studies that named a winner. A file given by ``--json`` is continued:
its rows stay if the code and the number of studies are the same.

Usage: python -m benchmarks.disturbance_simulation [--studies N] [--power-studies 1000]
           [--procedure compare proof-1 ...] [--null WORDS ...] [--processes 2] [--json FILE]
"""

from __future__ import annotations

import datetime
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

from autotune.comparison.paired_comparison import ComparisonRequest, compare_on
from autotune.errors import WorkError
from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, SearchPlan
from autotune.space import DEFAULT, Setting
from autotune.stats import LookPlan
from autotune.strategies import create
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.proof_rounds import Rounds
from autotune.study.simulation import MemoryTrialStore
from benchmarks.classwide_simulation import program
from benchmarks.common import commit, document, run_benchmark
from benchmarks.disturbances import (
    GAINS,
    NULLS,
    OWN_SPELLS,
    TRUTHS,
    DisturbedEvaluator,
)
from benchmarks.harness.simulation import Row, simulated, study_options
from benchmarks.search.code_digest import code_digest
from benchmarks.study_simulation import space
from runner.files import write_atomically

CANDIDATES = 30
"""Number of settings that a whole study may try."""
MOST_SHARE = 0.05
MOST_BOUND = 0.08
"""Largest share of false winners, and largest upper bound of it."""
MOST_BOUND_OF_SPELLS = 0.10
ANSWERS = ("named", "vetoed", "worse", "default", "aborted", "crashed")
"""Ends of a study. "vetoed": a winner of the proof was not named. "worse": `autotune compare` found
the default to be faster. "aborted": the default failed too often. "crashed": a fault of the code.
"""


@dataclass(frozen=True)
class Outcome:
    """The end of one study, one of :data:`ANSWERS`.

    ``contradicted``: a setting was named although the fresh pairs rule out a gain worth naming.
    """

    answer: str
    runs: int = 0
    contradicted: bool = False
    fault: str = ""


Procedure = Callable[[DisturbedEvaluator, int], Outcome]
"""One study with a seed."""


def comparison(evaluator: DisturbedEvaluator, seed: int) -> Outcome:
    """`autotune compare default p0=2`."""
    request = ComparisonRequest(
        target=program("simulated", held_out=False).target,
        space=space(),
        first=DEFAULT,
        second=Setting({"p0": 2}),
        plan=LookPlan(),
        seed=seed,
        ends_if_same=True,
    )
    verdict = compare_on(evaluator, request, "simulated").verdict
    words = {"better": "named", "worse": "worse", "contradicted": "vetoed", "failed": "aborted"}
    return Outcome(words.get(verdict, "default"))


def proof(finalists: int) -> Procedure:
    """The rest of a study whose search chose finalists of one parameter each.

    The round is stored first, so the study continues with its proof, as after an interruption.
    """

    def prove(evaluator: DisturbedEvaluator, seed: int) -> Outcome:
        settings = [Setting({f"p{number}": 2}) for number in range(finalists)]
        trials, where, plan = MemoryTrialStore(), space(), SearchPlan(trials=0)
        strategy = create("random", where, seed=seed)
        bench = Bench(evaluator, plan, Budget(evaluator.history))
        bench.ensure_defaults()
        Rounds(trials, where, plan.alpha).preregister(
            settings, min_gain=plan.min_gain, limit_s=bench.limit_s(), slim=settings
        )
        return outcome_of(run_procedure(evaluator, trials, strategy, where, plan, seed, warm=True))

    return prove


def whole_study(strategy: str) -> Procedure:
    """A study from its first run to its recommendation."""

    def search(evaluator: DisturbedEvaluator, seed: int) -> Outcome:
        where, plan = space(), SearchPlan(trials=CANDIDATES)
        proposals = create(strategy, where, seed=seed)
        return outcome_of(
            run_procedure(evaluator, MemoryTrialStore(), proposals, where, plan, seed)
        )

    return search


def outcome_of(study: StudyOutcome) -> Outcome:
    """The end of a study that went through its procedure."""
    recommendation = study.recommendation
    if recommendation is None:
        return Outcome("vetoed" if study.with_objections else "default")
    fresh = recommendation.fresh
    return Outcome(
        "named",
        contradicted=fresh is not None and fresh.interval and fresh.hi < fresh.min_gain,
    )


PROCEDURES: dict[str, Procedure] = {
    "compare": comparison,
    "proof-1": proof(1),
    "proof-3": proof(3),
    "ga": whole_study("ga"),
    "auto": whole_study("auto"),
}
WHOLE = ("ga", "auto")
STUDIES = {"proof-1": 600, "proof-3": 600, "compare": 200, "ga": 200, "auto": 200}
"""Studies of each row of nulls, in the order of the rows."""


def study(procedure: str, truth: str, number: int) -> Outcome:
    """Study ``number`` of a row, by names, so that another process can run it."""
    seed = zlib.crc32(f"{procedure} {truth}".encode()) + number
    evaluator = DisturbedEvaluator(TRUTHS[truth](np.random.default_rng([seed, 77])))
    try:
        end = PROCEDURES[procedure](evaluator, seed)
    except WorkError as problem:
        end = Outcome("aborted", fault=f"{problem.code}")
    except Exception as fault:  # A fault of the code is counted and shown, and the row goes on.
        end = Outcome("crashed", fault=f"study {number}: {fault!r}")
    return Outcome(end.answer, len(evaluator.history.entries), end.contradicted, end.fault)


def row_of(procedure: str, truth: str, outcomes: Sequence[Outcome]) -> Row:
    """The figures of one row; bounds are those of Clopper and Pearson, 95 %."""
    answers, studies = Counter(one.answer for one in outcomes), len(outcomes)
    bounds = stats.binomtest(answers["named"], studies).proportion_ci(0.95, method="exact")
    crash = next((one.fault for one in outcomes if one.answer == "crashed"), "")
    return {
        "procedure": procedure,
        "truth": truth,
        "null": truth in NULLS,
        "studies": studies,
        "named": answers["named"],
        "share": round(answers["named"] / studies, 4),
        "at_least": round(float(bounds.low), 4),
        "at_most": round(float(bounds.high), 4),
        **{answer: answers[answer] for answer in ANSWERS[1:]},
        "contradicted": sum(one.contradicted for one in outcomes),
        "runs": round(sum(one.runs for one in outcomes) / studies, 1),
        **({"crash": crash} if crash else {}),
    }


def holds(row: Row) -> bool:
    """Whether a row of a null has few enough false winners; True for power."""
    most = MOST_BOUND_OF_SPELLS if row["truth"] == OWN_SPELLS else MOST_BOUND
    return not row["null"] or (row["at_most"] <= most and row["share"] <= MOST_SHARE)


class Table:
    """The rows of a file, which is written after each new row; ``path`` None: nothing is stored.

    A row of other code, or of another number of studies, is replaced when it is measured again.
    """

    def __init__(self, path: Path | None, code: str) -> None:
        self.path = path
        self.code = code
        stored = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.rows: dict[tuple[str, str], Row] = {
            (row["procedure"], row["truth"]): row for row in stored.get("rows", ())
        }

    def row(self, procedure: str, truth: str, studies: int) -> Row | None:
        """The stored row of so many studies of this code; None if there is none."""
        row = self.rows.get((procedure, truth))
        return row if row and (row["studies"], row["code"]) == (studies, self.code) else None

    def add(self, row: Row) -> None:
        """Store a row with the code that made it."""
        marks = {"code": self.code, "commit": commit(), "date": f"{datetime.date.today()}"}
        self.rows[row["procedure"], row["truth"]] = row | marks
        if self.path is not None:
            text = _text(document("false winners and power", {"rows": list(self.rows.values())}))
            write_atomically(self.path, text)


def _text(rows_and_marks: Row) -> str:
    """JSON with one row a line."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in rows_and_marks["rows"])
    head = json.dumps(rows_and_marks | {"rows": []}, indent=1).removesuffix("[]\n}")
    return f"{head}[\n{rows}\n ]\n}}\n"


def rows_to_measure(procedures: Collection[str], words: Sequence[str]) -> list[tuple[str, str]]:
    """Procedures and truths of the rows to measure: power after the nulls, then whole studies."""
    chosen = [name for name in STUDIES if name in procedures]
    short = [name for name in chosen if name not in WHOLE]
    pairs = [(name, truth) for name in short for truth in NULLS]
    pairs += [("proof-1", truth) for truth in GAINS if "proof-1" in short]
    pairs += [(name, truth) for truth in NULLS for name in chosen if name in WHOLE]
    return [pair for pair in pairs if not words or any(word in pair[1] for word in words)]


def main() -> int:
    arguments = study_options(__doc__, 0)
    arguments.add_argument("--power-studies", type=int, default=1000)
    arguments.add_argument("--procedure", choices=PROCEDURES, nargs="+", default=list(STUDIES))
    arguments.add_argument("--null", nargs="+", default=[], help="truths with any of these words")
    arguments.add_argument("--processes", type=int, default=2)
    given = arguments.parse_args()
    code = code_digest(
        "benchmarks.disturbance_simulation",
        "autotune.strategies.ga.strategy",
        "autotune.strategies.auto",
    )
    table, rows = Table(Path(given.json) if given.json else None, code), []
    with simulated(given.processes) as run:
        for procedure, truth in rows_to_measure(given.procedure, given.null):
            studies = given.studies or STUDIES[procedure]
            studies = studies if truth in NULLS else given.power_studies
            row, began = table.row(procedure, truth, studies), time.perf_counter()
            if row is None:
                one = partial(study, procedure, truth)
                row = row_of(procedure, truth, run(one, studies))
                table.add(row | {"seconds": round(time.perf_counter() - began, 1)})
            rows.append(row)
            print(_line(row), file=sys.stderr, flush=True)
    return int(not all(map(holds, rows)))


def _line(row: Row) -> str:
    bounds = f"{row['share']:6.1%} ({row['at_least']:.1%} .. {row['at_most']:.1%})"
    rest = "  ".join(f"{name} {row[name]}" for name in ANSWERS if row[name])
    mark = "" if holds(row) else "  TOO MANY"
    return f"{row['procedure']:8} {row['truth']:46} {bounds}  {rest}  runs {row['runs']}{mark}"


if __name__ == "__main__":
    run_benchmark(main)
