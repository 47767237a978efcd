"""Every programming model of the project on one program, each tuned with as many settings.

    python -m benchmarks.models [--programs jacobi3d minighost] [--places node testbed] [--tries 12]

The models are flat MPI, split phase, MPI with threads, MATE, Tarragon and TPOD. Each gets as many
settings: its usual one, those that its space begins with, and drawn ones; between nodes half of
them with a larger eager limit of TCP, so that no form loses by the library's default alone. They
are tuned as :mod:`benchmarks.harness.contest` says. Then all, as they come and tuned, run in
interleaved blocks, guard on. The table has the speed-up over flat MPI tuned in the same way, with
its interval, and for each model the lines of code and the cyclomatic complexity of what is its own
(as Cicotti 2011, Table 4.8).  Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from benchmarks.common import ROOT, options, report, run_benchmark, table
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.contest import tune
from benchmarks.harness.figures import NO_INTERVAL, speedup
from benchmarks.harness.launches import Place

RANKS = 2
FLAT = "flat MPI"
EAGER = Setting({"btl_tcp_eager_limit": 4 << 20})
"""The largest limit of the space of TCP. Longer messages begin only after an answer, which waits
behind what the other node sends."""


@dataclass(frozen=True)
class Model:
    """A model: its variant of the program, its space, and the files that only it needs."""

    name: str
    variant: str
    space: str
    files: tuple[str, ...]


def models_of(program: str, face: str, spaces: tuple[str, ...], mate: tuple[str, ...]) -> Any:
    """The models of a program, whose messages are in ``face``.

    ``spaces`` are those of flat MPI and of MPI with threads; ``mate`` are further files of MATE.
    """
    place = f"runner/programs/apps/{program}/"
    flat = (f"{place}variant_mpi.py", f"{place}{face}")
    regions, common = f"{place}regions.py", "runner/programs/apps/common/"
    own = {
        (FLAT, "mpi", spaces[0]): (),
        ("split phase", "overlap", spaces[0]): flat,
        ("MPI and threads", "threads", spaces[1]): flat,
        ("MATE", "mate", "mate"): (regions, *mate, f"{common}ranks.py", f"{common}regions.py"),
        ("Tarragon", "tarragon", "tarragon"): (regions, f"{common}grid_tasks.py"),
        ("TPOD", "tpod", "tpod"): (regions, f"{common}tpod.py"),
    }
    return tuple(
        Model(*key, (f"{place}variant_{key[1]}.py", *(flat[1:] if key[0] == FLAT else files)))
        for key, files in own.items()
    )


MODELS: dict[str, tuple[str, tuple[Model, ...]]] = {
    "jacobi3d": (
        "face",
        models_of(
            "jacobi3d", "halo.py", ("tarragon", "mate"), ("runner/programs/apps/jacobi3d/mated.py",)
        ),
    ),
    "minighost": ("default", models_of("minighost", "exchange.py", ("tpod", "tpod"), ())),
}
"""Program -> its input, and its models."""
_BRANCHES = (
    *(ast.If, ast.For, ast.While, ast.IfExp, ast.comprehension, ast.ExceptHandler),
    *(ast.Assert, ast.match_case),
)


def code_of(files: Sequence[str]) -> tuple[int, int]:
    """Lines with code, and the cyclomatic complexity: functions and branches (McCabe)."""
    lines = complexity = 0
    for name in files:
        text = (ROOT / name).read_text()
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


def drawn(
    space: Space, variant: str, count: int, seed: int, libraries: Sequence[Setting]
) -> list[Setting]:
    """The usual setting of a variant, those that the space begins with, then drawn ones.

    Each is under each of the settings of the library, together at most ``count``.
    """
    libraries = [*dict.fromkeys(libraries)]
    count = max(count // len(libraries), 1)
    rng = np.random.default_rng(seed)
    usual = Setting({"variant": variant})
    begun = [start for start in space.starts if start.get("variant") == variant]
    found = {space.canonical(one): None for one in (usual, *begun)}
    for _ in range(200 * count):
        if len(found) >= count:
            break
        one = space.canonical(space.sample(rng).with_values(usual))
        if one != DEFAULT and space.is_valid(one):
            found[one] = None
    return [one.with_values(library) for one in found for library in libraries]


def contest(program: str, cluster: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each model of a program on a cluster."""
    input_, models = MODELS[program]
    target = Place.of(cluster).target(program, input_, RANKS, timeout_s=60.0)
    far = target.cluster.nodes > 1
    spaces = {
        m.name: target.space(f"openmpi+openmpi-tcp+{m.space}" if far else m.space) for m in models
    }
    libraries = (DEFAULT, EAGER) if far else (DEFAULT,)
    settings = {
        m.name: drawn(target.space(m.space), m.variant, given.tries, given.seed, libraries)
        for m in models
    }
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def run(name: str, setting: Setting) -> float:
            return bench.run(target.spec(spaces[name], setting), name).value_s

        run(FLAT, settings[FLAT][0])  # It is an outlier.
        tuned = {name: one.tuned for name, one in tune(settings, run, given.seed).items()}
        last = [
            (name, one) for name, own in settings.items() for one in {own[0]: 0, tuned[name]: 0}
        ]
        times = interleaved(last, lambda key, block: run(*key), given.blocks, given.seed)
    flat = {"tuned": times[FLAT, tuned[FLAT]], "as it comes": times[FLAT, settings[FLAT][0]]}
    rows = []
    for model in models:
        own = {
            "tuned": times[model.name, tuned[model.name]],
            "as it comes": times[model.name, settings[model.name][0]],
        }
        lines, complexity = code_of(model.files)
        rows.append(
            {
                "program": program,
                "cluster": cluster,
                "model": model.name,
                "seconds": f"{statistics.median(own['tuned']):.3f}",
                **{
                    form: "1" if model.name == FLAT else str(speedup(flat[form], own[form]))
                    for form in own
                },
                "lines": lines,
                "complexity": complexity,
                "setting": tuned[model.name].key,
            }
        )
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--programs", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--clusters", nargs="+", default=["local"], help="local, or a testbed")
    parser.add_argument("--tries", type=int, default=12, help="settings of each model")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for measure in [partial(contest, p, c) for p in given.programs for c in given.clusters]:
        found = measure(given)
        table([{k: v for k, v in row.items() if k != "setting"} for row in found])
        for row in found:
            print(f"  {row['model']}: {row['setting']}")
        sys.stdout.flush()
        rows += found
    print(f"{NO_INTERVAL}\n" if given.blocks < 6 else "")
    report("models", {"rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
