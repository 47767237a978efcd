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

import argparse
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
from autotune.space import DEFAULT, Setting
from autotune.study.output_check import OutputComparison, compare_outputs
from autotune.study.setting_syntax import read_settings
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import ROOT, conclude, run_benchmark, table
from benchmarks.mpi_programs import NoCompiler, compiled_for
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
SMALL = ("tiny", "S", "small")
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 100
"""
WATER = """&GLOBAL
  PROJECT water
  RUN_TYPE ENERGY
&END GLOBAL
&FORCE_EVAL
  METHOD QS
  &DFT
    BASIS_SET_FILE_NAME BASIS_MOLOPT
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 150
    &END MGRID
    &SCF
      EPS_SCF 1.0E-6
      MAX_SCF 30
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 6.0 6.0 6.0
    &END CELL
    &COORD
      O 0.0000 0.0000 0.0000
      H 0.7570 0.5860 0.0000
      H -0.7570 0.5860 0.0000
    &END COORD
    &KIND O
      BASIS_SET SZV-MOLOPT-SR-GTH
      POTENTIAL GTH-PADE-q6
    &END KIND
    &KIND H
      BASIS_SET SZV-MOLOPT-SR-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""
CHALLENGE = """HPLinpack benchmark input file
a small problem
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
400          Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
0            Number of additional problem sizes for PTRANS
400          values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""
# HPCC appends its results to a file.  Rank 0 makes it anew and prints it.
HPCC_RUN = """first() { [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ]; }
if first; then rm -f hpccoutf.txt; fi
hpcc && if first; then cat hpccoutf.txt; fi"""


@dataclass(frozen=True)
class Case:
    """A program with ``ranks``, and the settings that are tried; ``files`` are made beforehand.

    ``stop``: whether the check has to stop the settings. ``needs``: a program that may be missing.
    A program starts in a directory of its own.
    """

    name: str
    words: tuple[str, ...] = ()
    app: str | None = None
    input: str | None = None
    ranks: int = 2
    settings: tuple[str, ...] = RIGHT
    files: dict[str, str] = field(default_factory=dict)
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
        Case("lammps", LAMMPS, files={"in.melt": MELT}, needs="lmp"),
        Case("cp2k", CP2K, files={"water.inp": WATER}, environment=CP2K_DATA, needs="cp2k.psmp"),
        Case("hpcc", ("sh", "-c", HPCC_RUN), files={"hpccinf.txt": CHALLENGE}, needs="hpcc"),
    ]
    if product is not None:
        words = (str(product),)
        right = (*PROTOCOLS, "bind_to=none")
        found.append(Case("product, right settings", words, ranks=4, settings=right))
        found.append(Case("product, ring", words, ranks=4, settings=(WRONG,), stop=True))
    return found


@contextmanager
def started_in(case: Case) -> Iterator[None]:
    """A new directory with the case's files, and its environment, for this process."""
    before, kept = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        for name, text in case.files.items():
            (Path(place) / name).write_text(text)
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
        with target.runner(guard=False) as runner:
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
        "compared": found.compared,
        "lines": found.lines,
        "stop": bool(found.differing),
        "wanted": case.stop,
        "shown": [line.to_json() for line in found.differing[:3]],
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


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", default="openmpi-4.1")
    parser.add_argument("--runs", type=int, default=5, help="of the default and of each setting")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    return parser


def main() -> int:
    given = options().parse_args()
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
