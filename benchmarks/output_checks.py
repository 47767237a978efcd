"""How often the check of outputs stops a setting that is right, and whether it stops a wrong one.

Each program runs several times with the default and with settings that are known to be right; the
outputs are compared as a study compares them. No stop is right there. Programs: the applications
that come with autotune, and LAMMPS, CP2K and HPCC of the distribution. The last program reduces
with an operation that does not commute; with a ring allreduce on four ranks it computes wrong
products, and a stop is right. It is the program of case D02.

What is not installed is listed as missing. Times do not count, so the machine need not be quiet.

Usage: python -m benchmarks.output_checks [--mpi openmpi-4.1] [--runs 5] [--only lammps ...]
           [--json FILE]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.config.app import load_app
from autotune.errors import UsageError, WorkError
from autotune.measurement.output_check import OutputComparison, compare_outputs
from autotune.space import DEFAULT, Setting
from autotune.targets.request import TargetRequest
from autotune.targets.setting_syntax import read_settings
from autotune.targets.target import Target
from benchmarks.common import ROOT, conclude, options, run_benchmark, table
from benchmarks.compiled import NoCompiler, compiled_for
from runner.mpi.discover import find_library
from runner.types import RunRecord

PROTOCOLS = ("btl_vader_eager_limit=65536", 'btl="self,tcp"', "pml=ob1,btl_vader_eager_limit=512")
COLLECTIVES = tuple(
    f"coll_tuned_use_dynamic_rules=1,coll_tuned_{name}"
    for name in (
        "bcast_algorithm=binomial",
        "allreduce_algorithm=recursive_doubling",
        "alltoall_algorithm=pairwise",
    )
)
RIGHT = (*PROTOCOLS, *COLLECTIVES, "bind_to=none")
WRONG = "coll_tuned_use_dynamic_rules=1,coll_tuned_allreduce_algorithm=ring"
APPS = (
    *("cab", "cannon", "cloverleaf3d", "daps", "flowcart", "jacobi3d", "mcoll", "minighost"),
    *("nas-bt", "nas-cg", "nas-ep", "nas-ft", "nas-is", "nas-lu", "nas-mg", "nas-sp", "nbody"),
    *("needleman-wunsch", "pattern", "ring", "sparse-lu"),
)
"""The shipped applications; each with its smallest input, the one of SMALL that it has."""
SQUARES = {"nas-bt": 4, "nas-sp": 4}
"""Ranks of those that need a square number; the others run on two."""
INPUTS = ROOT / "benchmarks" / "inputs"
SMALL = ("tiny", "S", "small")
# HPCC appends its results to a file.  Rank 0 makes it anew and prints it.
HPCC_RUN = """first() { [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ]; }
if first; then rm -f hpccoutf.txt; fi
hpcc && if first; then cat hpccoutf.txt; fi"""


@dataclass(frozen=True)
class Case:
    """A program with ``ranks``, and the settings that are tried; ``file`` is one of INPUTS.

    ``stop``: whether the check has to stop the settings. ``needs``: a program that may be missing.
    A program starts in a directory of its own.
    """

    name: str
    words: tuple[str, ...] = ()
    app: str | None = None
    input: str | None = None
    ranks: int = 2
    settings: tuple[str, ...] = RIGHT
    file: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    stop: bool = False
    needs: str | None = None

    @property
    def missing(self) -> bool:
        """Whether the program is not installed."""
        return self.needs is not None and shutil.which(self.needs) is None


LAMMPS = ("lmp", "-in", "in.melt", "-log", "none")
CP2K = ("cp2k.psmp", "-i", "water.inp")
CP2K_DATA = {"CP2K_DATA_DIR": "/usr/share/cp2k", "OMP_NUM_THREADS": "1"}


def smallest(app: str) -> str | None:
    """The name of an application's smallest input; None: its usual one."""
    inputs = load_app(app).inputs
    return next((name for name in SMALL if name in inputs), None)


def cases(product: Path | None) -> list[Case]:
    """All of them; ``product``: the compiled program of case D02, None without a compiler."""
    found = [
        Case(name, app=name, input=smallest(name), ranks=SQUARES.get(name, 2)) for name in APPS
    ]
    found += [
        Case("lammps", LAMMPS, file="in.melt", needs="lmp"),
        Case("cp2k", CP2K, file="water.inp", environment=CP2K_DATA, needs="cp2k.psmp"),
        Case("hpcc", ("sh", "-c", HPCC_RUN), file="hpccinf.txt", needs="hpcc"),
    ]
    if product is not None:
        words = (str(product),)
        right = (*PROTOCOLS, "bind_to=none")
        found.append(Case("product, right settings", words, ranks=4, settings=right))
        found.append(Case("product, ring", words, ranks=4, settings=(WRONG,), stop=True))
    return found


@contextmanager
def started_in(case: Case) -> Iterator[None]:
    """A new directory with the case's file, and its environment, for this process."""
    before, kept = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        if case.file:
            shutil.copy(INPUTS / case.file, place)
        os.chdir(place)
        os.environ.update(case.environment)
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(kept)


def target_of(case: Case, mpi: str) -> Target:
    return find_target(
        TargetRequest(
            program=list(case.words) or None,
            app=case.app,
            input=case.input,
            ranks=case.ranks,
            mpi=mpi,
            timeout=300.0,
        )
    )


def compared(case: Case, mpi: str, runs: int) -> list[dict[str, Any]]:
    """One row for each setting; default and settings take turns."""
    with started_in(case):
        target = target_of(case, mpi)
        space = target.space()
        space, settings = read_settings(case.settings, space, target.library)
        every: dict[str, tuple[Setting, list[RunRecord]]] = {"default": (DEFAULT, [])}
        every |= {text: (one, []) for text, one in zip(case.settings, settings, strict=True)}
        with target.locked_runner(guard=False) as runner:
            for _ in range(runs):
                for setting, records in every.values():
                    records.append(runner.run(target.spec(space, setting)))
    reference = every.pop("default")[1]
    return [
        row_of(case, text, records, compare_outputs(reference, records, setting))
        for text, (setting, records) in every.items()
    ]


def row_of(
    case: Case, text: str, records: Sequence[RunRecord], found: OutputComparison
) -> dict[str, Any]:
    states = sorted({record.state for record in records})
    return {
        "program": case.name,
        "setting": text,
        "states": ",".join(states),
        "compared": found.is_conclusive,
        "lines": found.lines,
        "stop": bool(found.differing),
        "wanted": case.stop,
        "shown": [line.row for line in found.differing[:3]],
    }


def judge(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Faults in words. What could not be compared is one: it shows nothing."""
    wrong = []
    for row in rows:
        place = f"{row['program']}, {row['setting']}"
        if not row["compared"]:
            wrong.append(f"{place}: not compared ({row['states']})")
        elif row["stop"] and not row["wanted"]:
            wrong.append(f"{place}: a false stop: {row['shown'][0]}")
        elif row["wanted"] and not row["stop"]:
            wrong.append(f"{place}: not stopped")
    return wrong


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--mpi", default="openmpi-4.1")
    parser.add_argument("--runs", type=int, default=5, help="of the default and of each setting")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    errors: list[str] = []
    absent: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        try:
            source = ROOT / "tests/cases/programs/product.c"
            product = compiled_for(find_library(given.mpi), source, Path(place), more=("-lm",))
        except NoCompiler as problem:
            product = None
            absent.append(f"product: {problem}")
        for case in cases(product):
            if given.only and not any(case.name.startswith(name) for name in given.only):
                continue
            if case.missing:
                absent.append(case.name)
                continue
            try:
                rows += compared(case, given.mpi, given.runs)
            except (UsageError, WorkError) as error:
                errors.append(f"{case.name}: {error}")
            print(case.name, file=sys.stderr)
    if rows:
        table([{k: v for k, v in row.items() if k != "shown"} for row in rows])
    right = [row for row in rows if not row["wanted"] and row["compared"]]
    figures = {
        "mpi": given.mpi,
        "runs_of_each": given.runs,
        "settings_compared": len(right),
        "false_stops": sum(row["stop"] for row in right),
        "missing": absent,
        "rows": rows,
    }
    bound = "no stop of a right setting, a stop of the wrong one"
    return conclude("output checks", bound, [*judge(rows), *errors], figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
