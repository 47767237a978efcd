"""Every programming model of the project on one program, each tuned with as many settings.

    python -m benchmarks.models [--programs jacobi3d minighost] [--places node testbed] [--tries 12]

The models are flat MPI, split phase, MPI with threads, MATE, Tarragon and TPOD.  Each gets as many
settings: its usual one, those that its space begins with, and drawn ones; between nodes half of
them with a larger eager limit of TCP.  Each runs once, the fastest quarter three times more, and
the fastest by its median is the model's tuned setting.  Then all, as they come and tuned, run in
interleaved blocks, guard on.  The table has the speed-up over flat MPI tuned in the same way, with
its interval, and for each model the lines of code and the cyclomatic complexity of what is its own
(as Cicotti 2011, Table 4.8).  Needs a machine without other work.
"""

from __future__ import annotations

import ast
import io
import random
import statistics
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.space import DEFAULT, Setting
from autotune.stats import compare
from benchmarks.checks import one
from benchmarks.common import ROOT, options, report, run_benchmark, table
from benchmarks.program_cells import PLACES, Cell, Place
from benchmarks.tarragon_goals import EAGER, KEPT, drawn, fastest
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec

RANKS = 2
FLAT = "flat MPI"


@dataclass(frozen=True)
class Model:
    """A model: its variant of the program, its space, and the files that only it needs."""

    name: str
    variant: str
    space: str
    files: tuple[str, ...]


JACOBI = "runner/apps/jacobi3d/"
GHOST = "runner/apps/minighost/"
RANKED = ("runner/apps/common_ranks.py", "runner/apps/common_regions.py")
TASKS = "runner/apps/common_grid_tasks.py"
"""What both programs need for the ranks of MATE and the tasks of Tarragon."""
MODELS = {
    "jacobi3d": (
        "face",
        (
            Model(FLAT, "mpi", "tarragon", (f"{JACOBI}variant_mpi.py", f"{JACOBI}halo.py")),
            Model("split phase", "overlap", "tarragon",
                  (f"{JACOBI}variant_overlap.py", f"{JACOBI}variant_mpi.py", f"{JACOBI}halo.py")),
            Model("MPI and threads", "threads", "mate",
                  (f"{JACOBI}variant_threads.py", f"{JACOBI}variant_mpi.py", f"{JACOBI}halo.py")),
            Model("MATE", "mate", "mate",
                  (f"{JACOBI}variant_mate.py", f"{JACOBI}mated.py", f"{JACOBI}regions.py",
                   *RANKED)),
            Model("Tarragon", "tarragon", "tarragon",
                  (f"{JACOBI}variant_tarragon.py", f"{JACOBI}regions.py", TASKS)),
            Model("TPOD", "tpod", "tpod",
                  (f"{JACOBI}variant_tpod.py", "runner/apps/common_tpod.py",
                   f"{JACOBI}regions.py")),
        ),
    ),
    "minighost": (
        "default",
        (
            Model(FLAT, "mpi", "tpod", (f"{GHOST}variant_mpi.py", f"{GHOST}exchange.py")),
            Model("split phase", "overlap", "tpod",
                  (f"{GHOST}variant_overlap.py", f"{GHOST}variant_mpi.py", f"{GHOST}exchange.py")),
            Model("MPI and threads", "threads", "tpod",
                  (f"{GHOST}variant_threads.py", f"{GHOST}variant_mpi.py", f"{GHOST}exchange.py")),
            Model("MATE", "mate", "mate",
                  (f"{GHOST}variant_mate.py", f"{GHOST}regions.py", *RANKED)),
            Model("Tarragon", "tarragon", "tarragon",
                  (f"{GHOST}variant_tarragon.py", f"{GHOST}regions.py", TASKS)),
            Model("TPOD", "tpod", "tpod",
                  (f"{GHOST}variant_tpod.py", "runner/apps/common_tpod.py",
                   f"{GHOST}regions.py")),
        ),
    ),
}  # fmt: skip
"""Program -> its input, and its models."""
_BRANCHES = (
    *(ast.If, ast.For, ast.While, ast.IfExp, ast.comprehension, ast.ExceptHandler),
    *(ast.Assert, ast.match_case),
)


def code_of(files: Sequence[str]) -> tuple[int, int]:
    """Lines with code, and the cyclomatic complexity: functions and branches (McCabe)."""
    lines = complexity = 0
    for name in files:
        text = (ROOT / Path(name)).read_text()
        tree = ast.parse(text)
        said = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }
        blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
                 tokenize.DEDENT, tokenize.ENDMARKER)  # fmt: skip
        coded: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in blank:
                coded |= set(range(token.start[0], token.end[0] + 1))
        lines += len(coded - said)
        for node in ast.walk(tree):
            complexity += isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, *_BRANCHES))
            if isinstance(node, ast.BoolOp):
                complexity += len(node.values) - 1
    return lines, complexity


class Contest:
    """The models of one program at one place."""

    def __init__(self, program: str, place: Place, given: Any) -> None:
        self._input, self.models = MODELS[program]
        self._cell = Cell(program, RANKS, place, app=program, input=self._input)
        self._target = self._cell.target(given.testbed)
        self._far, self._given = place == "testbed", given
        self.settings = {m.name: self._settings(m) for m in self.models}
        self.seconds: dict[tuple[str, Setting], list[float]] = {}

    def _settings(self, model: Model) -> list[Setting]:
        also = EAGER if self._far else DEFAULT
        space = self._target.space(model.space)
        return drawn(space, (model.variant,), self._given.tries, self._given.seed, also)

    def spec(self, name: str, setting: Setting) -> LaunchSpec:
        """What is started."""
        model = next(m for m in self.models if m.name == name)
        joined = f"openmpi+openmpi-tcp+{model.space}" if self._far else model.space
        return self._target.spec(self._target.space(joined), setting)

    def run(self) -> tuple[dict[str, Setting], list[dict[tuple[str, Setting], float]]]:
        """The tuned setting of each model, and the times of all finalists in each block."""
        dice = random.Random(self._given.seed)
        own = self._target.cluster.own_processes
        launcher = adapter(self._target.library)
        with Runner(launcher, guard=not self._given.guard, own_processes=own) as runner:
            every = [(name, s) for name, found in self.settings.items() for s in found]
            one(runner, self.spec(*every[0]))
            self._measure(runner, every, 1, dice)
            kept = []
            for name, found in self.settings.items():
                times = {s: self.seconds[name, s] for s in found}
                count = max(1, -(-len(found) // KEPT))
                kept += [(name, s) for s in fastest(found, times, count)]
            self._measure(runner, kept, 3, dice)
            tuned = {}
            for name in self.settings:
                times = {s: self.seconds[name, s] for other, s in kept if other == name}
                tuned[name] = fastest(list(times), times)[0]
            last = [(name, s) for name in self.settings
                    for s in dict.fromkeys((self.settings[name][0], tuned[name]))]  # fmt: skip
            blocks = []
            for _ in range(self._given.blocks):
                order = dice.sample(last, len(last))
                blocks.append({key: one(runner, self.spec(*key)) for key in order})
        return tuned, blocks

    def _measure(
        self, runner: Runner, keys: list[tuple[str, Setting]], times: int, dice: random.Random
    ) -> None:
        for _ in range(times):
            for key in dice.sample(keys, len(keys)):
                self.seconds.setdefault(key, []).append(one(runner, self.spec(*key)))


def held(program: str, place: Place, given: Any) -> list[dict[str, Any]]:
    """One row for each model."""
    contest = Contest(program, place, given)
    tuned, blocks = contest.run()
    flat = [block[FLAT, tuned[FLAT]] for block in blocks]
    plain = [block[FLAT, contest.settings[FLAT][0]] for block in blocks]
    rows = []
    for model in contest.models:
        lines, complexity = code_of(model.files)
        own = [block[model.name, tuned[model.name]] for block in blocks]
        usual = [block[model.name, contest.settings[model.name][0]] for block in blocks]
        row: dict[str, Any] = {
            "program": program,
            "place": place,
            "model": model.name,
            "seconds": f"{statistics.median(own):.3f}",
        }
        for name, mine, other in (("tuned", own, flat), ("as it comes", usual, plain)):
            found = compare(other, mine) if mine is not other and mine != other else None
            row[name] = (
                f"{1 + found.gain:.2f} ({1 + found.lo:.2f}..{1 + found.hi:.2f})" if found else "1"
            )
        row |= {"lines": lines, "complexity": complexity, "setting": tuned[model.name].key}
        rows.append(row)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--programs", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--places", nargs="+", choices=PLACES, default=["node"])
    parser.add_argument("--tries", type=int, default=12, help="settings of each model")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--testbed", default="testbed", metavar="NAME")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for program in given.programs:
        for place in given.places:
            found = held(program, place, given)
            table([{k: v for k, v in row.items() if k != "setting"} for row in found])
            for row in found:
                print(f"  {row['model']}: {row['setting']}")
            sys.stdout.flush()
            rows += found
    report("models", {"rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
