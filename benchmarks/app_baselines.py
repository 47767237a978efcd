"""The flat-MPI form of the applications against straightforward programs in C over MPI.

    python -m benchmarks.app_baselines [--apps cannon:small ...] [--blocks 9] [--json FILE]

The C programs are in ``benchmarks/references``; they do the same work on the same input and are
compiled with ``mpicc -O3 -march=native`` into a temporary directory. Both programs run in blocks of
random order under the same launcher and binding, and their checksums must agree. A ratio is the
application's time over that of C: the median of the blocks' ratios, and its 95 % interval. Times
are medians and (min) the smallest, in seconds. A ratio
above 1.2 is a defect of the application. Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.errors import UsageError, WorkError
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import ROOT, conclude, run_benchmark, table
from benchmarks.jacobi_cases import CaseRunner, against_flat, ratio, seconds
from benchmarks.mpi_programs import FASTEST, NoCompiler, compiled_for
from runner.apps.cannon import options as cannon
from runner.apps.cloverleaf3d import options as cloverleaf3d
from runner.apps.flowcart import application as flowcart
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter
from runner.native import blas
from runner.types import LaunchSpec, RunRecord

BOUND = 1.2
"""Largest ratio that is no defect."""
MIN_BLOCKS = 6
"""Smallest number of blocks that gives a 95 % interval."""
Words = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Case:
    """An application and its program in C, which prints ``{"solver_s": ..., "checksum": ...}``."""

    source: str
    """The file in ``benchmarks/references``."""
    inputs: Sequence[str]
    """The inputs whose ratios count; others are for tests."""
    arguments: Words
    """The arguments of the C program for an input."""
    libraries: Callable[[], Sequence[str]] = lambda: ("-lm",)
    """Words after the source when it is compiled."""
    checksum: str = "checksum"
    """The key of the checksum in the application's line."""
    tolerance: float = 1e-9
    """Largest relative difference of the checksums; 0: they are equal to the last bit."""
    words: Sequence[str] = ("--variant", "mpi")
    """Words for the application."""


def with_blas() -> Sequence[str]:
    """The product of matrices by the library that numpy, and so the application, uses."""
    name, path = blas.symbol(), blas.library_path()
    if name is None or path is None:
        return ()
    whole = f"{blas.NAMES[name]}_t"
    return f"-DDGEMM={name}", f"-DWHOLE={whole}", path, f"-Wl,-rpath,{Path(path).parent}"


def _cannon_arguments(name: str) -> Sequence[str]:
    size, iterations, _ = cannon.INPUTS[name]
    return str(size), str(iterations)


def _cloverleaf_arguments(name: str) -> Sequence[str]:
    size, steps, _ = cloverleaf3d.INPUTS[name]
    return *map(str, size), str(steps)


def _flowcart_arguments(name: str) -> Sequence[str]:
    width, cycles, cut_work, _ = flowcart.INPUTS[name]
    return str(width), str(cycles), str(cut_work)


CASES = {
    "cannon": Case(
        "cannon.c", ("small", "default", "large"), _cannon_arguments, with_blas, tolerance=0.0
    ),
    "cloverleaf3d": Case(
        "cloverleaf3d.c",
        ("small", "default", "long"),
        _cloverleaf_arguments,
        checksum="energy",
    ),
    "flowcart": Case(
        "flowcart.c",
        ("default", "large", "heavy"),
        _flowcart_arguments,
        checksum="residual",
        tolerance=1e-8,
    ),
}
"""The application's name -> its program in C. A new one needs an entry here and a file."""


@dataclass(frozen=True)
class Pair:
    """The launches of an application and of the C program, on one input."""

    app: str
    input: str
    case: Case
    launches: dict[str, LaunchSpec]

    @property
    def name(self) -> str:
        return f"{self.app}:{self.input}"

    def check(self, program: str, record: RunRecord, first: float | None) -> float:
        """The checksum of a run; raises WorkError if it is not that of the first run."""
        key = "checksum" if program == "C" else self.case.checksum
        found = record.extra.get(key)
        if not isinstance(found, (int, float)):
            raise WorkError(
                f"{self.name}: the line of the {program} program has no {key}",
                code="benchmark.fails",
            )
        if first is not None and not math.isclose(
            found, first, rel_tol=self.case.tolerance, abs_tol=0.0
        ):
            raise WorkError(
                f"{self.name}: the checksum of the {program} program is {found!r}, expected "
                f"{first!r} within {self.case.tolerance:g}: they do not the same work",
                code="benchmark.fails",
            )
        return float(found)


def pair(app: str, name: str, target: Target, place: Path) -> Pair:
    """The two programs; the C program is compiled into ``place``. Raises NoCompiler."""
    case = CASES[app]
    source = ROOT / "benchmarks" / "references" / case.source
    program = compiled_for(target.library, source, place, FASTEST, case.libraries())
    spec = dataclasses.replace(target.spec(None), read_back=False)
    in_c = dataclasses.replace(spec, program=(str(program), *case.arguments(name)), verify=None)
    in_app = dataclasses.replace(spec, program=(*spec.program, *case.words))
    return Pair(app, name, case, {"app": in_app, "C": in_c})


def measure(bench: CaseRunner, each: Pair, blocks: int, order: random.Random) -> dict[str, Any]:
    """Both programs once in every block, and the line of the table."""
    found: dict[str, list[RunRecord]] = {program: [] for program in each.launches}
    checksum: float | None = None
    for _ in range(blocks):
        for program in order.sample(list(found), len(found)):
            record = bench.launch(f"{each.name} {program}", each.launches[program])
            checksum = each.check(program, record, checksum)
            found[program].append(record)
    value, low, high = ratio(against_flat(found["C"], found["app"]))
    times = {program: sorted(seconds(records)) for program, records in found.items()}
    return {
        "input": each.name,
        "app_s": f"{times['app'][blocks // 2]:.4f}",
        "c_s": f"{times['C'][blocks // 2]:.4f}",
        "ratio": f"{value:.3f}",
        "95 %": f"{low:.3f}..{high:.3f}",
        "min_app": f"{times['app'][0]:.4f}",
        "min_c": f"{times['C'][0]:.4f}",
        "checksum": checksum,
    }


def chosen(words: Sequence[str]) -> list[tuple[str, str]]:
    """Application and input of ``app`` (its inputs for figures) or ``app:input`` (any).

    Raises UsageError for an unknown application.
    """
    found = []
    for word in words:
        app, _, name = word.partition(":")
        if app not in CASES:
            raise UsageError(
                f"--apps {word}: there is no {app}; expected {', '.join(CASES)}",
                code="benchmark.fails",
            )
        found += [(app, one) for one in ([name] if name else CASES[app].inputs)]
    return found


def measured(given: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of the table. Raises UsageError, WorkError, NoCompiler."""
    if given.blocks < 1:
        raise UsageError(f"--blocks {given.blocks}: expected 1 or more", code="benchmark.fails")
    targets = [
        (app, name, find_target(TargetRequest(None, app, name, given.ranks, "local", given.mpi)))
        for app, name in chosen(given.apps)
    ]
    rows: list[dict[str, Any]] = []
    order = random.Random(0)
    with tempfile.TemporaryDirectory() as place, MachineLock("exclusive"):
        for app, name, target in targets:
            each = pair(app, name, target, Path(place))
            with Runner(adapter(target.library), guard=given.guard) as runner:
                bench = CaseRunner(runner, target)
                bench.launch(f"{each.name} app", each.launches["app"])  # the first is an outlier
                row = measure(bench, each, given.blocks, order)
                rows.append(row | {"rejected": bench.rejected})
    return rows


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--apps", nargs="+", default=list(CASES), metavar="APP[:INPUT]", help=" ".join(CASES))
    add("--ranks", type=int, help="processes; default: the application's")
    add("--blocks", type=int, default=9, help=f"below {MIN_BLOCKS} there are no intervals")
    add("--mpi", metavar="PREFIX", help="the MPI library, if there are several")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    return parser


def main() -> int:
    parser = options()
    given = parser.parse_args()
    try:
        rows = measured(given)
    except UsageError as error:
        parser.error(str(error))
    except (WorkError, NoCompiler) as error:
        parser.exit(1, f"app_baselines: {error}\n")
    table([{key: value for key, value in row.items() if key != "checksum"} for row in rows])
    slow = [f"{row['input']}: {row['ratio']}" for row in rows if float(row["ratio"]) > BOUND]
    bound = f"time of the application over that of C <= {BOUND}"
    return conclude("app baselines", bound, slow, {"guard": given.guard, "rows": rows}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
