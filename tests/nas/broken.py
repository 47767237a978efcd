"""Kernels broken on purpose: ``mpirun -n 2 python -m tests.nas.broken``.

Prints one line of JSON per case: its name, the exit code that the program would return, and what it
printed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

from runner.programs.nas.cg import CG  # noqa: E402
from runner.programs.nas.common.run import main as program  # noqa: E402
from runner.programs.nas.mg import MG  # noqa: E402
from runner.programs.nas.mg_halo import Halo  # noqa: E402


def expecting(kernel: str, **values: Any) -> Any:
    """The kernel with other reference values in class S."""
    problems = importlib.import_module(f"runner.programs.nas.{kernel}").PROBLEMS
    return patch.dict(problems, S=dataclasses.replace(problems["S"], **values))


@contextlib.contextmanager
def norm_is_nan() -> Iterator[None]:
    solve = MG.solve

    def wrong(self: MG) -> None:
        solve(self)
        self._norm = math.nan

    with patch.object(MG, "solve", wrong):
        yield


CASES: dict[str, Callable[[], Any]] = {
    "is expects another rank": lambda: expecting("is", ranks=((7, 1, 0),) * 5),
    "ep expects one pair more": lambda: expecting("ep", pairs=13176390),
    "cg expects another digit": lambda: expecting("cg", zeta=8.5971775178648),
    "cg leaves out sums": lambda: patch.object(CG, "_sum_along_row", lambda self, values: None),
    "mg has no number": norm_is_nan,
    "mg exchanges no faces": lambda: patch.object(Halo, "exchange", lambda self: None),
    "cg is whole": contextlib.nullcontext,
}


def main(comm: Any) -> int:
    for name, breaking in CASES.items():
        out = io.StringIO()
        with breaking(), contextlib.redirect_stdout(out):
            code = program(comm, [name.split()[0], "--class", "S"], 0.0)
        if comm.rank == 0:
            print(json.dumps({"case": name, "code": code, "out": out.getvalue()}), flush=True)
    return 0


if __name__ == "__main__":
    run("broken", "single", main)
