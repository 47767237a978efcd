"""Records what failing programs print under each MPI library: data/complaints.json.

    python -m tests.runner.make_complaints [--new] LIBRARY COMPILERS [LIBRARY COMPILERS ...]

LIBRARY is as for ``autotune --mpi``, COMPILERS the directory and suffix of its ``mpicc`` and
``mpif90`` (``/usr/bin/*.mpich``).  The expected words are written by hand beside each text; those
that are there already stay.  --new: only the cases of which the library has no row.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from runner.launch import Runner
from runner.mpi.discover import adapter, find_library
from runner.types import LaunchSpec

DATA = Path(__file__).parent / "data" / "complaints.json"
_HEAD = """
#include <mpi.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
int main(int c, char **v) {
  int r, two[2] = {1, 2}; (void)two; MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r);
"""
_TAIL = "\n  MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize(); return 0; }\n"
C = {
    "segmentation fault": "if (r == 1) *(volatile int *)0 = 1;",
    "abort": "if (r == 1) abort();",
    "assertion": "if (r == 1) assert(two[0] == 2);",
    "division by zero": "if (r == 1) raise(SIGFPE);",
    "killed": "if (r == 1) raise(SIGKILL);",
    "heap": "if (r == 1) { char *p = malloc(8); free(p + 4); }",
    "exit silent": "if (r == 1) exit(3);",
    "exit with words": 'if (r == 1) { fprintf(stderr, "solver: the matrix is singular at row '
    '7\\n"); exit(3); }',
    "words on standard output": 'if (r == 1) { printf("step 1\\nERROR: no convergence\\n"); '
    "fflush(stdout); exit(3); }",
    "progress before": 'if (r == 0) for (int i = 0; i < 9; i++) fprintf(stderr, "step %d\\n", i); '
    'if (r == 0) { fprintf(stderr, "Error: cannot open mesh.dat\\n"); exit(4); }',
    "MPI_Abort with words": 'if (r == 1) { fprintf(stderr, "solver: the matrix is singular at row '
    '7\\n"); MPI_Abort(MPI_COMM_WORLD, 3); }',
    "MPI_Abort silent": "if (r == 1) MPI_Abort(MPI_COMM_WORLD, 3);",
    "wrong rank": "if (r == 1) MPI_Send(&r, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);",
    "truncated message": "if (r == 0) MPI_Send(two, 2, MPI_INT, 1, 0, MPI_COMM_WORLD); "
    "else MPI_Recv(two, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);",
    "no finalize": "if (r == 1) return 0;",
    # Public cases A05 and E04: the reason stands behind warnings, or on standard output only.
    "words behind warnings": "if (r == 0) { fprintf(stderr, \"libibverbs: Warning: couldn't load "
    "driver 'libmlx5-rdmav34.so': cannot open shared object file: No such file or directory\\n\"); "
    'fprintf(stderr, "solver: the matrix is singular at row 7\\n"); exit(3); }',
    "output behind warnings": "if (r == 0) { fprintf(stderr, \"libibverbs: Warning: couldn't load "
    "driver 'libmlx5-rdmav34.so': cannot open shared object file: No such file or directory\\n\"); "
    'printf(" step 1\\n ERROR: mesh has 7 cells, and 8 are needed\\n"); fflush(stdout); '
    "MPI_Abort(MPI_COMM_WORLD, 3); }",
    "file exists": 'if (r == 0) { printf(" error in line 424 io_file.F90 NetCDF: File exists '
    '&& NC_NOCLOBBER\\n"); fflush(stdout); MPI_Abort(MPI_COMM_WORLD, 1); }',
    "end of input": 'if (r == 0 && scanf("%d", two) != 1) '
    '{ fprintf(stderr, "cannot read n\\n"); MPI_Abort(MPI_COMM_WORLD, 3); }',
}
FORTRAN = {
    "fortran missing file": "open(10, file='mesh.dat', status='old')",
    "fortran end of input": "if (r == 0) read(*,*) n",
    "fortran error stop": "if (r == 1) error stop 'the grid does not fit the ranks'",
    "fortran stop code": "if (r == 1) stop 5",
    "fortran stop behind a note": "if (r == 1) then\n n = 0\n x = 1.0 / n\n print *, x\n"
    " stop 5\n end if",
}
PYTHON = {
    "python exception": "def solve(n):\n    return 1 / n\nsolve(0)\n",
    "python exit with words": "import sys\nif r == 1: sys.exit('the mesh has no cells')\n",
    "python missing module": "import nothere\n",
    "python end of input": "if r == 0: n = int(input())\n",
    "python words behind warnings": "import warnings\nwarnings.warn('bad import', "
    "DeprecationWarning)\nwarnings.warn('cannot open the old file', UserWarning)\n"
    "if r == 1: sys.exit('the mesh has no cells')\n",
    "python many lines": "raise ValueError('first line\\nsecond line')\n",
}
BEHIND: dict[str, dict[str, tuple[str, ...]]] = {
    "openmpi": {
        "a transport's warning": (
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "btl_tcp_if_include",
            "lo,eth77",
        ),
        "a transport's warning, then words": ("--mca", "btl_tcp_if_include", "eth77"),
        "a locale": ("-x", "LC_ALL=xx_XX"),
    },
    "mpich": {"a locale": ("-genv", "LC_ALL", "xx_XX")},
}
"""Options after which the library, or a script of Perl, warns; the program then fails by itself."""
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "openmpi": {
        "no such component": ("--mca", "pml", "ucx"),
        "no such transport": ("--mca", "btl", "nothere"),
        "unknown option": ("--nothere",),
        "bad policy": ("--map-by", "nothere"),
        "too many bound": ("--bind-to", "package:nothere"),
    },
    "mpich": {
        "unknown option": ("--nothere",),
        "bad policy": ("-bind-to", "nothere"),
        "bad variable": ("-genv", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "nothere"),
    },
}


def programs(place: Path, compilers: str) -> dict[str, tuple[str, ...]]:
    """Every program, compiled where it must be, as its command line."""
    made: dict[str, tuple[str, ...]] = {}
    for kind, suffix, compiler in ((C, ".c", "mpicc"), (FORTRAN, ".f90", "mpif90")):
        for name, text in kind.items():
            stem = name.replace(" ", "_")
            source, target = place / f"{stem}{suffix}", place / stem
            source.write_text(_fortran(text) if suffix == ".f90" else _HEAD + text + _TAIL)
            words = [compilers.replace("*", compiler), source.name, "-o", target.name]
            try:
                subprocess.run(words, cwd=place, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as problem:
                print(f"{name}: not compiled: {problem}", file=sys.stderr)
                continue
            made[name] = (str(target),)
    for name, text in PYTHON.items():
        script = place / f"{name.replace(' ', '_')}.py"
        script.write_text(f"import sys\nfrom mpi4py import MPI\nr = MPI.COMM_WORLD.rank\n{text}")
        made[name] = (sys.executable, str(script))
    made["python exception under mpi4py"] = (
        *(sys.executable, "-m", "mpi4py"),
        str(place / "python_exception.py"),
    )
    made["no such program"] = (str(place / "nothere"),)
    (place / "plain.txt").write_text("no program\n")
    made["no executable"] = (str(place / "plain.txt"),)
    made["command not found"] = ("sh", "-c", "nothere --run")
    return made


def _fortran(text: str) -> str:
    return (
        "program p\n use mpi\n real :: x\n integer :: n, r, e\n call mpi_init(e)\n"
        " call mpi_comm_rank(mpi_comm_world, r, e)\n"
        f" {text}\n call mpi_barrier(mpi_comm_world, e)\n call mpi_finalize(e)\nend program\n"
    )


def record(wanted: str, compilers: str, known: frozenset[str]) -> list[dict[str, Any]]:
    """One row for each program and each launch option that ends a launch, but those ``known``."""
    found = find_library(wanted)
    rows = []
    place = Path(tempfile.mkdtemp(prefix="complaints-"))
    made = programs(place, compilers)
    cases = [(name, words, ()) for name, words in made.items()]
    cases += [(n, made["exit silent"], o) for n, o in OPTIONS[found.family].items()]
    perl = ("perl", "-e", "exec @ARGV", *made["output behind warnings"])
    cases += [(n, perl, o) for n, o in BEHIND[found.family].items()]
    cases = [case for case in cases if case[0] not in known]
    with Runner(adapter(found), guard=False) as runner:
        for name, words, options in cases:
            spec = LaunchSpec(words, 2, launch_options=options, timeout_s=8, cwd=str(place))
            scratch = place / "scratch"
            scratch.mkdir(exist_ok=True)
            result = runner._execute(
                runner._request(spec, scratch, runner.adapter.report_pattern(spec))
            )
            row = {
                "library": f"{found.family} {found.version}",
                "case": name,
                "exit_code": result.exit_code,
                "signal": result.signal,
                "stdout": result.stdout_tail,
                "stderr": result.stderr_tail,
            }
            if result.exit_code and not result.timed_out:
                rows.append({k: _anonymous(v, place) for k, v in row.items()})
    shutil.rmtree(place)
    return rows


def _anonymous(value: object, place: Path) -> object:
    if not isinstance(value, str):
        return value
    prefix = str(Path(sys.executable).parent.parent)
    return value.replace(str(place), "/home/user").replace(prefix, "/opt/venv")


def main() -> None:
    known = json.loads(DATA.read_text()) if DATA.exists() else []
    told = {(row["library"], row["case"]): row.get("expected") for row in known}
    rows = {(row["library"], row["case"]): row for row in known}
    words = sys.argv[1:]
    new = words[:1] == ["--new"]
    for wanted, compilers in zip(words[new::2], words[new + 1 :: 2], strict=True):
        found = find_library(wanted)
        title = f"{found.family} {found.version}"
        there = (
            frozenset(case for library, case in rows if library == title) if new else frozenset()
        )
        for row in record(wanted, compilers, there):
            name = (row["library"], row["case"])
            rows[name] = {**row, "expected": told.get(name)}
    DATA.write_text(json.dumps(list(rows.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
