"""The main command of this checkout beside that of another commit, interleaved.

Each seed is one ``autotune search`` of both checkouts, one directly after the other in random
order, each with a new results database. The ratio is time here over time there: of the medians,
and for each seed. ``overhead_s`` is what the study itself took, beside its launches. Studies of one
seed may differ in their number of runs, since the proof ends when it is decided; so there is a
ratio for each run, too.

The other checkout needs an environment of its own: a git worktree with a ``.venv``, given by its
Python.

Usage: python -m benchmarks.main_command --other PYTHON [--seeds 5] [--app jacobi3d] [--input I]
           [--strategy ga] [--trials N] [--most-ratio 1.05] [--no-guard] [--json FILE]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import (
    ROOT,
    Answer,
    autotune,
    commit,
    conclude,
    options,
    run_benchmark,
    table,
)
from benchmarks.harness.bench import interleaved

HERE, THERE = "here", "there"
PATIENCE_S = 3600.0


@dataclass(frozen=True)
class Checkout:
    """A directory with the sources, the Python that imports them, and their commit."""

    python: str
    place: Path

    @classmethod
    def of(cls, python: str) -> Checkout:
        """The checkout that ``autotune`` is imported from; raises SystemExit if there is none."""
        words = [python, "-c", "import autotune; print(autotune.__file__)"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/")
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"--other {python}: it cannot import autotune: {error}") from None
        return cls(python, Path(done.stdout.strip()).parents[1])

    def search(self, words: list[str], seed: int) -> Answer:
        """One search with a database of its own."""
        with tempfile.TemporaryDirectory() as place:
            files = ("--store", f"{place}/r.db", "--params-file", f"{place}/found.conf")
            return autotune(
                *("search", *words, "--seed", str(seed), *files),
                timeout_s=PATIENCE_S, python=self.python, place=self.place,
            )  # fmt: skip


def figures_of(side: str, seed: int, answer: Answer) -> dict[str, Any]:
    """What counts of one search; raises SystemExit if it has no result."""
    result = answer.result
    if answer.code != 0 or "status" not in result:
        raise SystemExit(f"{side}, seed {seed}: exit {answer.code}: {answer.text[-500:]}")
    runs = result["search_runs"] + result["confirmation_runs"]
    return {
        "side": side,
        "seed": seed,
        "status": result["status"],
        "runs": runs,
        "rejected": result["runs_rejected"],
        "wall_s": round(answer.wall_s, 3),
        "overhead_s": round(result["overhead_s"], 3),
        "wall_s_per_run": round(answer.wall_s / runs, 5),
        "overhead_s_per_run": round(result["overhead_s"] / runs, 6),
    }


def ratios(rows: list[dict[str, Any]], figure: str) -> dict[str, Any]:
    """Here over there: of the medians over all seeds, and seed by seed."""
    here, there = (
        {row["seed"]: row[figure] for row in rows if row["side"] == side} for side in (HERE, THERE)
    )
    medians = [statistics.median(side.values()) for side in (here, there)]
    pairs = {seed: round(here[seed] / there[seed], 4) for seed in sorted(here)}
    return {
        "of_medians": round(medians[0] / medians[1], 4),
        "median_of_pairs": round(statistics.median(pairs.values()), 4),
        "pairs": pairs,
    }


def judge(found: dict[str, dict[str, Any]], most: float) -> list[str]:
    """Faults in words: the wall time, and that for each run."""
    return [
        f"{figure} is {found[figure]['of_medians']:.3f} times that of the other commit"
        for figure in ("wall_s", "wall_s_per_run")
        if found[figure]["of_medians"] > most
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--other", required=True, metavar="PYTHON")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--app", default="jacobi3d")
    parser.add_argument("--input")
    parser.add_argument("--strategy", default="ga")
    parser.add_argument("--trials", help="default: that of the command")
    parser.add_argument("--most-ratio", type=float, default=1.05)
    given = parser.parse_args()
    sides = {HERE: Checkout(sys.executable, ROOT), THERE: Checkout.of(given.other)}
    if sides[THERE].place == ROOT:
        parser.error("--other is the Python of this checkout; expected that of another one")
    words = ["--app", given.app, "--strategy", given.strategy, *given.guard]
    words += ["--input", given.input] if given.input else []
    words += ["--trials", given.trials] if given.trials else []

    def run(side: str, block: int) -> dict[str, Any]:
        seed = given.first_seed + block
        row = figures_of(side, seed, sides[side].search(words, seed))
        print(row, file=sys.stderr)
        return row

    found_rows = interleaved((HERE, THERE), run, given.seeds, 0)
    rows = [row for both in found_rows.values() for row in both]
    table(rows)
    measures = ("wall_s", "overhead_s", "wall_s_per_run", "overhead_s_per_run")
    found = {figure: ratios(rows, figure) for figure in measures}
    for figure, ratio in found.items():
        print(f"{figure}: {ratio['of_medians']} of the medians; by seed {ratio['pairs']}")
    figures = {
        "search": " ".join(words),
        "other_commit": commit(sides[THERE].place) or "unknown",
        "ratios": found,
        "searches": rows,
    }
    bound = f"wall time, and that for each run, at most {given.most_ratio} times the other's"
    return conclude("main command", bound, judge(found, given.most_ratio), figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
