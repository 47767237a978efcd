"""The sparse LU factorization beside SuperLU_DIST, each tuned with as many settings.

    apt-get install libsuperlu-dist-dev libopenblas0-serial
    python -m benchmarks.superlu_dist [--only poisson] [--clusters local testbed] [--json FILE]

SuperLU_DIST does the same: supernodes on a mesh of processes, right-looking. It runs in a small C
program (``benchmarks/superlu/driver.c``) that reads the application's matrices from a file and is
compiled on the spot. Both run under one MPI library, the distribution's, for which its SuperLU_DIST
was built; with one thread each and, on a node, one core for each process.

The contestants: the application step by step and as a graph of tasks; SuperLU_DIST with any order
of the columns, and with minimum degree on A + A^T, the application's order. Each gets ``--tries``
settings: its usual one and drawn ones, with each value of a parameter about equally often. They are
tuned as :mod:`benchmarks.harness.contest` says, and then run in interleaved blocks. A residual that
is too large is a failure.

Seconds are those of the factorization alone, without order, analysis, distribution and solution, on
the slowest process, of the second of two runs in a process. The operations are those that each
counts for its own blocks, zeros in them included; MB is what the factors take. "speed" is the time
of the tuned SuperLU_DIST over the contestant's: above 1 the contestant is faster. A SuperLU_DIST
with the reference BLAS is not measured. Needs a
machine without other work.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import WorkError
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.compiled import FASTEST, NoCompiler, compiled_for
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.contest import Tuning, tune
from benchmarks.harness.figures import NO_INTERVAL, speedup
from benchmarks.harness.launches import Place
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.abi import needed_library
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.linkage import identify_file
from runner.mpi.output import output_of
from runner.programs.apps.sparse_lu.application import EXACT
from runner.programs.apps.sparse_lu.matrices import MATRICES, Matrix
from runner.programs.apps.sparse_lu.symbolic import Analysis, analyse

SOURCE = Path(__file__).parent / "superlu" / "driver.c"
HEADERS = Path("/usr/include/superlu-dist")
REFERENCE = "theirs"
NAMES = {
    "mpi": "step by step",
    "tarragon": "tasks",
    REFERENCE: "SuperLU_DIST",
    "theirs-mmd": "SuperLU_DIST, minimum degree",
}
INPUTS = ("poisson", "convection", "band", "dense")
SMALL = {"poisson": 8, "convection": 8, "band": 800, "dense": 200}
"""Sizes of quick runs."""
SYMMETRIC = frozenset({"poisson", "convection", "dense"})
"""Matrices with a symmetric pattern. SuperLU_DIST may be told so; told falsely, it is wrong."""
Setting = tuple[tuple[str, str], ...]
Space = Mapping[str, Sequence[str]]
"""The values of each parameter; the first is the usual one."""
Line = dict[str, Any]
"""What a program prints."""


class NotMeasured(Exception):
    """SuperLU_DIST cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Contestant:
    """A program with its parameters; ``words`` makes the command line of a setting."""

    key: str
    space: Space
    words: Callable[[Setting], list[str]]


def write_csr(path: Path, matrix: Matrix) -> None:
    """The file that the driver reads: rows, entries, starts of the rows, columns, values."""
    with path.open("wb") as file:
        np.array([matrix.shape[0], matrix.nnz], "<i8").tofile(file)
        matrix.indptr.astype("<i8").tofile(file)
        matrix.indices.astype("<i8").tofile(file)
        matrix.data.astype("<f8").tofile(file)


def built(library: Library, place: Path) -> Path:
    """The driver, compiled for the library; raises :class:`NotMeasured`."""
    if not HEADERS.is_dir():
        raise NotMeasured("SuperLU_DIST is not installed: apt-get install libsuperlu-dist-dev")
    flags = (*FASTEST, "-rdynamic", f"-isystem{HEADERS}")
    try:
        program = compiled_for(library, SOURCE, place, flags, ("-lsuperlu_dist", "-ldl", "-lm"))
    except NoCompiler as error:
        raise NotMeasured(f"{error}") from None
    need = needed_library([str(program)])
    own = identify_file(need.place) if need and need.place else None
    if own is None or (own.family, own.version) != (library.family, library.version):
        has = f"{own.family} {own.version}" if own else "an unknown MPI library"
        raise NotMeasured(
            f"it runs with {has}, and the launcher is of {library.family} {library.version}"
        )
    mains = set(re.findall(r"\blib(?:mpi|mpich)\.so\.\d+", output_of(["ldd", str(program)])))
    if len(mains) > 1:
        raise NotMeasured(f"it was built for another MPI library: {' and '.join(sorted(mains))}")
    return program


def meshes(ranks: int) -> list[str]:
    """The meshes of processes, the squarest first."""
    every = [(rows, ranks // rows) for rows in range(1, ranks + 1) if ranks % rows == 0]
    return [f"{r}x{c}" for r, c in sorted(every, key=lambda mesh: (abs(mesh[0] - mesh[1]), mesh))]


def contestants(name: str, size: int, ranks: int, driver: Path, file: Path) -> list[Contestant]:
    """Those for one matrix."""

    def own(variant: str) -> Callable[[Setting], list[str]]:
        def words(setting: Setting) -> list[str]:
            line = [sys.executable, "-m", "runner.programs.apps.sparse_lu", "--input", name]
            line += ["--size", f"{size}", "--variant", variant]
            for key, value in setting:
                if value in ("on", "off"):
                    line += [f"--{key}"] if value == "on" else []
                else:
                    line += [f"--{key}", value]
            return line

        return words

    def theirs(setting: Setting) -> list[str]:
        return [str(driver), str(file), *(f"{key}={value}" for key, value in setting)]

    cut = {
        "width": ("64", "32", "128", "256"),
        "relax": ("16", "1", "4", "32"),
        "mesh": meshes(ranks),
    }
    tasks = {
        **cut,
        "priority": ("none", "edges", "wavefront"),
        "tagging": ("off", "on"),
        "aggregation": ("off", "on"),
    }
    # The natural order makes sense for a band only, and takes minutes for the stencils.
    orders = ("mmd", "metis", "natural") if name == "band" else ("mmd", "metis")
    superlu = {
        "order": orders,
        "maxsup": ("256", "64", "128", "512"),
        "relax": ("60", "10", "20", "40"),
        "lookahead": ("10", "0", "5", "20"),
        "grid": meshes(ranks),
        "symmetric": ("0", "1") if name in SYMMETRIC else ("0",),
    }
    return [
        Contestant("mpi", cut, own("mpi")),
        Contestant("tarragon", tasks, own("tarragon")),
        Contestant(REFERENCE, superlu, theirs),
        Contestant("theirs-mmd", {**superlu, "order": ("mmd",)}, theirs),
    ]


def drawn(space: Space, count: int, seed: int) -> list[Setting]:
    """The usual setting, then different ones with each value about equally often."""
    rng = np.random.default_rng(seed)
    found = [tuple((key, values[0]) for key, values in space.items())]
    for _ in range(100):
        # A column for each parameter: its values in turn, shuffled.
        columns = {
            key: rng.permutation([values[n % len(values)] for n in range(count)])
            for key, values in space.items()
        }
        for n in range(count):
            one = tuple((key, str(column[n])) for key, column in columns.items())
            if one not in found and len(found) < count:
                found.append(one)
    return found


def text(setting: Setting) -> str:
    """A setting in one word."""
    return ",".join(f"{key}={value}" for key, value in setting)


def checked(line: dict[str, Any]) -> dict[str, Any]:
    """A program's figures; raises :class:`WorkError` if its solution is wrong."""
    residual = line["residual"]
    if residual is None or not residual < EXACT:
        raise WorkError(f"the residual is {residual}", code="benchmark.fails")
    if "operations" not in line:
        line["operations"] = 1e9 * line["gflops"] * line["seconds"]
    return line


def stored_mb(analysis: Analysis) -> float:
    """What the blocks of the application take, in 10^6 bytes."""
    entries = 0
    for k, below in enumerate(analysis.below):
        own = analysis.width(k)
        entries += own * own + 2 * own * sum(map(analysis.width, below))
    return 8e-6 * entries


def row_of(name: str, lines: Sequence[Line], reference: Sequence[Line]) -> dict[str, Any]:
    """A contestant's row of the table, from what it and the reference printed in each block."""
    own, theirs = ([line["seconds"] for line in both] for both in (lines, reference))
    middle, last = statistics.median(own), lines[-1]
    return {
        "program": NAMES[name],
        "seconds": f"{middle:.4f}",
        "GFLOP/s": f"{last['operations'] / middle / 1e9:.2f}",
        "10^9 op.": f"{last['operations'] / 1e9:.3f}",
        "MB": f"{last['factors_mb']:.1f}",
        "residual": f"{max(line['residual'] for line in lines):.0e}",
        "speed": str(speedup(theirs, own)),
    }


def contest(
    name: str, driver: Path, run: Callable[[list[str]], Line], given: argparse.Namespace
) -> dict[str, Any]:
    """Tune all contestants on one matrix and compare them: rows, and the figures behind them."""
    size = given.size or (SMALL[name] if given.quick else MATRICES[name][1])
    matrix = MATRICES[name][0](size)
    file = driver.parent / f"{name}.csr"
    write_csr(file, matrix)
    every = {one.key: one for one in contestants(name, size, given.ranks, driver, file)}
    settings = {key: drawn(one.space, given.tries, given.seed) for key, one in every.items()}

    def line(key: str, setting: Setting) -> Line:
        return checked(run(every[key].words(setting)))

    found = tune(settings, lambda key, setting: float(line(key, setting)["seconds"]), given.seed)
    blocks = interleaved(
        [*every], lambda key, block: line(key, found[key].tuned), given.blocks, given.seed
    )
    for key in ("mpi", "tarragon"):
        cut = dict(found[key].tuned)
        megabytes = stored_mb(analyse(matrix, int(cut["width"]), int(cut["relax"])))
        for one in blocks[key]:
            one["factors_mb"] = megabytes
    rows = [row_of(key, lines, blocks[REFERENCE]) for key, lines in blocks.items()]
    print(f"{name}, size {size}")
    table(rows)
    for key, tuning in found.items():
        print(f"  {NAMES[key]}: {text(tuning.tuned)} (of {tuning.tried})")
        for setting, why in tuning.left_out.items():
            print(f"    left out: {text(setting)}: {why}")
    print(flush=True)
    programs = {key: behind(found[key], lines) for key, lines in blocks.items()}
    return {"matrix": name, "size": size, "rows": rows, "programs": programs}


def behind(tuning: Tuning[Setting], lines: Sequence[Line]) -> dict[str, Any]:
    """The figures behind a contestant's row."""
    left_out = {text(setting): why for setting, why in tuning.left_out.items()}
    return {"tuned": text(tuning.tuned), "tried": tuning.tried, "left_out": left_out,
            "blocks": [*lines]}  # fmt: skip


def identified(run: Callable[[list[str]], Line], driver: Path) -> dict[str, str]:
    """SuperLU_DIST's version and its BLAS; raises :class:`NotMeasured` for the reference BLAS."""
    file = driver.parent / "tiny.csr"
    write_csr(file, MATRICES["tiny"][0](MATRICES["tiny"][1]))
    line = run([str(driver), str(file)])
    blas = line["blas"]
    # The distribution has the reference in .../blas/, and others in directories of their own.
    if Path(blas).parent.name in ("blas", "lapack"):
        raise NotMeasured(f"its BLAS is the reference, {blas}: apt-get install libopenblas0-serial")
    return {"superlu_dist": line["version"], "blas": blas}


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """All matrices on all clusters; raises :class:`NotMeasured`."""
    figures: dict[str, Any] = {"contests": []}
    with contextlib.ExitStack() as stack:
        if not given.quick:
            stack.enter_context(MachineLock("exclusive"))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for cluster in given.clusters:
            place = Place.of(cluster, given.mpi)
            driver = built(place.library, scratch)
            guard = not (given.guard or given.quick)
            launcher = adapter(place.library)
            with Runner(launcher, guard=guard, own_processes=place.own_processes) as runner:
                bench = Bench(runner)

                def run(words: list[str], place: Place = place, bench: Bench = bench) -> Line:
                    return dict(bench.run(place.program(words, given.ranks)).extra)

                figures |= identified(run, driver)
                for name in given.only:
                    figures["contests"].append(
                        {"cluster": cluster, **contest(name, driver, run, given)}
                    )
    return figures


def main() -> int:
    parser = options(__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=INPUTS, default=list(INPUTS), help="matrices")
    add("--clusters", nargs="+", default=["local"], help="local, or a testbed that is up")
    add("--tries", type=int, default=8, help="settings of each contestant")
    add("--blocks", type=int, default=8)
    add("--ranks", type=int, default=2)
    add("--size", type=int, metavar="N", help="of the matrix, as for the application")
    add("--seed", type=int, default=1)
    add("--mpi", default="/usr", help="as for autotune; SuperLU_DIST must be built for it")
    add("--quick", action="store_true", help="small matrices, two settings: not for figures")
    given = parser.parse_args()
    if min(given.tries, given.blocks, given.ranks) < 1:
        parser.error("--tries, --blocks, --ranks: expected 1 or more")
    if given.quick:
        given.tries, given.blocks = min(given.tries, 2), min(given.blocks, 2)
    # For both: SuperLU_DIST has threads of OpenMP, and so may its BLAS.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        figures = {**measured(given), "not_measured": None}
    except NotMeasured as error:
        print(f"SuperLU_DIST: not measured: {error}")
        figures = {"not_measured": f"{error}"}
    print(f"{NO_INTERVAL}\n" if given.blocks < 6 else "")
    report("superlu_dist", {"ranks": given.ranks, **figures}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
