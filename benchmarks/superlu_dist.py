"""The sparse LU factorization beside SuperLU_DIST, each tuned with as many settings.

    apt-get install libsuperlu-dist-dev libopenblas0-serial
    python -m benchmarks.superlu_dist [--only poisson] [--places node testbed] [--json FILE]

SuperLU_DIST does the same: supernodes on a mesh of processes, right-looking. It runs in a small C
program (``benchmarks/superlu/driver.c``) that reads the application's matrices from a file and is
compiled on the spot. Both run under one MPI library, the distribution's, for which its SuperLU_DIST
was built; with one thread each and, on a node, one core for each process.

The contestants: the application step by step and as a graph of tasks; SuperLU_DIST with any order
of the columns, and with minimum degree on A + A^T, the application's order. Each gets ``--tries``
settings: its usual one and drawn ones, with each value of a parameter about equally often. Every
setting runs once, the fastest quarter three times more, and the best median is the tuned one. Then
all contestants run in interleaved blocks. Settings that fail or whose residual is too large are
left out and named.

Seconds are those of the factorization alone, without order, analysis, distribution and solution, on
the slowest process, of the second of two runs in a process. The operations are those that each
counts for its own blocks, zeros in them included; MB is what the factors take. "speed" is the time
of the tuned SuperLU_DIST over the contestant's: above 1 the contestant is faster. A SuperLU_DIST
with the reference BLAS is not measured. The testbed must be up for the place testbed. Needs a
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.stats import compare
from benchmarks.common import report, run_benchmark, table
from benchmarks.mpi_programs import FASTEST, NoCompiler, Programs, compiled_for, python
from benchmarks.program_cells import PLACES
from runner.apps.sparse_lu.application import EXACT
from runner.apps.sparse_lu.matrices import MATRICES, Matrix
from runner.apps.sparse_lu.symbolic import Analysis, analyse
from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mpi.discover import find_library, linked_with
from runner.mpi.library import Library
from runner.mpi.output import output_of

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
KEPT = 4
"""One in so many settings runs three times more."""

Setting = Mapping[str, str]
Space = Mapping[str, Sequence[str]]
"""The values of each parameter; the first is the usual one."""


class NotMeasured(Exception):
    """SuperLU_DIST cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Contestant:
    """A program with its parameters; ``words`` makes the command line of a setting."""

    key: str
    space: Space
    words: Callable[[Setting], list[str]]


@dataclass
class Result:
    """The runs of one contestant: its settings, those left out with the reason, and its blocks."""

    tuned: Setting = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    tried: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        """Seconds of the factorization in each block."""
        return [line["seconds"] for line in self.lines]


def write_csr(path: Path, matrix: Matrix) -> None:
    """The file that the driver reads: rows, entries, starts of the rows, columns, values."""
    with path.open("wb") as file:
        np.array([matrix.shape[0], matrix.nnz], "<i8").tofile(file)
        matrix.indptr.astype("<i8").tofile(file)
        matrix.indices.astype("<i8").tofile(file)
        matrix.data.astype("<f8").tofile(file)


def read_csr(path: Path) -> Matrix:
    """The matrix of such a file."""
    from scipy import sparse

    data = path.read_bytes()
    rows, entries = np.frombuffer(data, "<i8", 2)
    starts = np.frombuffer(data, "<i8", rows + 1, 16)
    at = 16 + 8 * (rows + 1)
    columns = np.frombuffer(data, "<i8", entries, at)
    values = np.frombuffer(data, "<f8", entries, at + 8 * entries)
    return sparse.csr_array((values, columns, starts), shape=(rows, rows))


def built(library: Library, place: Path) -> Path:
    """The driver, compiled for the library; raises :class:`NotMeasured`."""
    if not HEADERS.is_dir():
        raise NotMeasured("SuperLU_DIST is not installed: apt-get install libsuperlu-dist-dev")
    flags = (*FASTEST, "-rdynamic", f"-isystem{HEADERS}")
    try:
        program = compiled_for(library, SOURCE, place, flags, ("-lsuperlu_dist", "-ldl", "-lm"))
    except NoCompiler as error:
        raise NotMeasured(f"{error}") from None
    own = linked_with([str(program)])
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
            line = python("runner.apps.sparse_lu", "--input", name, "--size", f"{size}")
            line += ["--variant", variant]
            for key, value in setting.items():
                if value in ("on", "off"):
                    line += [f"--{key}"] if value == "on" else []
                else:
                    line += [f"--{key}", value]
            return line

        return words

    def theirs(setting: Setting) -> list[str]:
        return [str(driver), str(file), *(f"{key}={value}" for key, value in setting.items())]

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
    found = [{key: values[0] for key, values in space.items()}]
    for _ in range(100):
        # A column for each parameter: its values in turn, shuffled.
        columns = {
            key: rng.permutation([values[n % len(values)] for n in range(count)])
            for key, values in space.items()
        }
        for n in range(count):
            one = {key: str(column[n]) for key, column in columns.items()}
            if one not in found and len(found) < count:
                found.append(one)
    return list(found)


def text(setting: Setting) -> str:
    """A setting in one word."""
    return ",".join(f"{key}={value}" for key, value in setting.items())


def checked(line: dict[str, Any]) -> dict[str, Any]:
    """A program's figures; raises :class:`WorkError` if its solution is wrong."""
    residual = line["residual"]
    if residual is None or not residual < EXACT:
        raise WorkError(f"the residual is {residual}", code="benchmark.fails")
    if "operations" not in line:
        line["operations"] = 1e9 * line["gflops"] * line["seconds"]
    return line


Run = Callable[[Setting], dict[str, Any]]
"""Runs a setting once; raises :class:`WorkError` if it fails."""


def tuned(space: Space, run: Run, tries: int, seed: int) -> Result:
    """The fastest setting by median; raises :class:`WorkError` if none works."""
    found = Result()
    settings = drawn(space, tries, seed)
    times: dict[str, list[float]] = {}

    def once(some: Iterable[Setting]) -> None:
        for setting in some:
            try:
                times.setdefault(text(setting), []).append(run(setting)["seconds"])
            except WorkError as error:
                found.left_out[text(setting)] = f"{error}".strip().splitlines()[-1]

    def ordered() -> list[Setting]:
        valid = [s for s in settings if times.get(text(s)) and text(s) not in found.left_out]
        return sorted(valid, key=lambda s: statistics.median(times[text(s)]))

    once(settings)
    best = ordered()[: -(-len(settings) // KEPT)]
    for _ in range(3):
        once(best)
    kept = [setting for setting in ordered() if setting in best]
    if not kept:
        why = next(iter(found.left_out.values()))
        raise WorkError(f"none of {len(settings)} settings works: {why}", code="benchmark.fails")
    found.tried, found.tuned = len(settings), kept[0]
    return found


def speed(reference: Sequence[float], own: Sequence[float]) -> str:
    """How many times as fast as the reference, with the interval."""
    found = compare(reference, own, resolution=0.0)
    return f"{1 + found.gain:.3g} ({1 + found.lo:.3g} .. {1 + found.hi:.3g})"


def stored_mb(analysis: Analysis) -> float:
    """What the blocks of the application take, in 10^6 bytes."""
    entries = 0
    for k, below in enumerate(analysis.below):
        own = analysis.width(k)
        entries += own * own + 2 * own * sum(map(analysis.width, below))
    return 8e-6 * entries


def row_of(place: str, matrix: str, key: str, result: Result, reference: Result) -> dict[str, Any]:
    """A contestant's row of the table."""
    middle = statistics.median(result.seconds)
    line = result.lines[-1]
    return {
        "place": place,
        "matrix": matrix,
        "program": NAMES[key],
        "seconds": f"{middle:.4f}",
        "GFLOP/s": f"{line['operations'] / middle / 1e9:.2f}",
        "10^9 op.": f"{line['operations'] / 1e9:.3f}",
        "MB": f"{line['factors_mb']:.1f}",
        "residual": f"{max(each['residual'] for each in result.lines):.0e}",
        "speed": speed(reference.seconds, result.seconds),
    }


def contest(
    name: str, place: str, driver: Path, on: Programs, given: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tune all contestants on one matrix and compare them; rows, and the figures behind them."""
    size = given.size or (SMALL[name] if given.quick else MATRICES[name][1])
    matrix = MATRICES[name][0](size)
    file = driver.parent / f"{name}.csr"
    write_csr(file, matrix)
    every = contestants(name, size, given.ranks, driver, file)

    def run(contestant: Contestant, setting: Setting) -> dict[str, Any]:
        line, _ = on.run(contestant.words(setting), given.ranks)
        return checked(line)

    results = {
        own.key: tuned(own.space, partial(run, own), given.tries, given.seed) for own in every
    }
    rng = np.random.default_rng(given.seed)
    for _ in range(given.blocks):
        for n in rng.permutation(len(every)):
            found = results[every[n].key]
            found.lines.append(run(every[n], found.tuned))
    for key in ("mpi", "tarragon"):
        cut = results[key].tuned
        analysis = analyse(matrix, int(cut["width"]), int(cut["relax"]))
        for line in results[key].lines:
            line["factors_mb"] = stored_mb(analysis)
    rows = [row_of(place, name, key, r, results[REFERENCE]) for key, r in results.items()]
    figures = {
        key: {"tuned": text(r.tuned), "tried": r.tried, "left_out": r.left_out, "blocks": r.lines}
        for key, r in results.items()
    }
    return rows, {"place": place, "matrix": name, "size": size, "programs": figures}


def identified(on: Programs, driver: Path, ranks: int) -> dict[str, str]:
    """SuperLU_DIST's version and its BLAS; raises :class:`NotMeasured` for the reference BLAS."""
    file = driver.parent / "tiny.csr"
    write_csr(file, MATRICES["tiny"][0](MATRICES["tiny"][1]))
    line, _ = on.run([str(driver), str(file)], ranks)
    blas = line["blas"]
    # The distribution has the reference in .../blas/, and others in directories of their own.
    if Path(blas).parent.name in ("blas", "lapack"):
        raise NotMeasured(f"its BLAS is the reference, {blas}: apt-get install libopenblas0-serial")
    return {"superlu_dist": line["version"], "blas": blas}


def run(given: argparse.Namespace) -> None:
    """Measure all matrices at all places, print the tables and write the figures."""
    for name in ("tries", "blocks", "ranks"):
        if getattr(given, name) < 1:
            raise UsageError(
                f"--{name} {getattr(given, name)}: expected 1 or more", code="benchmark.fails"
            )
    if given.quick:
        given.tries, given.blocks = min(given.tries, 2), min(given.blocks, 2)
    # For both: SuperLU_DIST has threads of OpenMP, and so may its BLAS.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    library = find_library(given.mpi)
    rows: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    reason = None
    with contextlib.ExitStack() as stack:
        if not given.quick:
            stack.enter_context(MachineLock("exclusive"))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            driver = built(library, place)
            for where in given.places:
                cluster = "local" if where == "node" else given.testbed
                with Programs(library, cluster) as on:
                    versions = identified(on, driver, given.ranks)
                    for name in given.only:
                        more, behind = contest(name, where, driver, on, given)
                        rows += more
                        figures.append(behind)
                        show(more, behind)
        except NotMeasured as error:
            reason = f"{error}"
    if reason is not None:
        print(f"SuperLU_DIST: not measured: {reason}")
    print()
    behind_all = {
        "fingerprint": describe_machine().fingerprint,
        "library": f"{library.family} {library.version}",
        "ranks": given.ranks,
        **versions,
        "rows": rows,
        "contests": figures,
        "not_measured": reason,
    }
    report("superlu_dist", behind_all, given.json)


def show(rows: list[dict[str, Any]], behind: Mapping[str, Any]) -> None:
    """The table of one matrix, the tuned settings, and what was left out."""
    print(f"{behind['matrix']}, size {behind['size']}, {behind['place']}")
    table([{k: v for k, v in row.items() if k not in ("place", "matrix")} for row in rows])
    for key, found in behind["programs"].items():
        print(f"  {NAMES[key]}: {found['tuned']} (of {found['tried']})")
        for setting, why in found["left_out"].items():
            print(f"    left out: {setting}: {why}")
    print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=INPUTS, default=list(INPUTS), help="matrices")
    add("--places", nargs="+", choices=PLACES, default=["node"])
    add("--testbed", default="testbed", metavar="NAME")
    add("--tries", type=int, default=8, help="settings of each contestant")
    add("--blocks", type=int, default=8)
    add("--ranks", type=int, default=2)
    add("--size", type=int, metavar="N", help="of the matrix, as for the application")
    add("--seed", type=int, default=1)
    add("--mpi", default="/usr", help="as for autotune; SuperLU_DIST must be built for it")
    add("--quick", action="store_true", help="small matrices, two settings: not for figures")
    add("--json", metavar="FILE")
    try:
        run(parser.parse_args())
    except (AutotuneError, RunnerError) as error:
        print(f"superlu_dist: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
