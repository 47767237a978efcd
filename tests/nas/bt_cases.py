"""What is run under mpirun for the tests of FT, LU, BT and SP; one line of JSON per case.

``mpirun -n RANKS python -m tests.nas.bt_cases WHAT...`` where WHAT is one of :data:`CASES` or the
name of a kernel, which is run in class S on a communicator that counts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

from runner.programs.nas.cfd_faces import Faces  # noqa: E402
from runner.programs.nas.common.run import main as program  # noqa: E402
from runner.programs.nas.ft import FT  # noqa: E402
from runner.programs.nas.ft_layout import Turner  # noqa: E402
from runner.programs.nas.lu_domain import Messages  # noqa: E402
from tests.nas.counting import counted  # noqa: E402

Result = dict[str, Any]
SIZE = 13
"""Points that 2 ranks cannot share evenly."""


def module(name: str) -> Any:
    return importlib.import_module(f"runner.programs.nas.{name}")


def class_s(comm: Any, name: str) -> Result:
    kernel = module(name)
    return counted(comm, lambda c: kernel.build(c, kernel.PROBLEMS["S"]))


def ft_on_grid(comm: Any, grid: tuple[int, int]) -> Result:
    """FT cut along two axes, which the original does only on more ranks than planes."""
    return counted(comm, lambda c: FT(c, module("ft").PROBLEMS["S"], grid))


def uneven(comm: Any, name: str) -> Result:
    """The same odd problem on all ranks and on each alone: all results."""
    from mpi4py import MPI

    found = []
    for ranks in (comm, MPI.COMM_SELF):
        problem = dataclasses.replace(module(name).PROBLEMS["S"], size=SIZE, iterations=7)
        kernel = module(name).build(ranks, problem)
        kernel.prepare()
        kernel.solve()
        found.append([check.value for check in kernel.checks()])
    return {"together": found[0], "alone": found[1]}


@contextlib.contextmanager
def nothing(owner: Any, *names: str) -> Iterator[None]:
    """These methods do nothing."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(owner, name, lambda *_: None))
        yield


def expecting(name: str, **values: Any) -> Any:
    problems = module(name).PROBLEMS
    return patch.dict(problems, S=dataclasses.replace(problems["S"], **values))


def broken(comm: Any, name: str, breaking: Any) -> Result:
    """The exit code of the program and what it printed, with something wrong."""
    out = io.StringIO()
    with breaking, contextlib.redirect_stdout(out):
        code = program(comm, [name, "--class", "S"], 0.0)
    return {"code": code, "out": out.getvalue()}


def no_turn(self: Turner, source: Any, target: Any, shape: Any) -> Callable[[], None]:
    return lambda: None


SUMS = tuple(s * (1 + 1e-11) for s in module("ft").PROBLEMS["S"].sums)
NORMS = (1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02, 1.0, 1.0)
CASES: dict[str, Callable[[Any], Result]] = {
    "ft 2x2": lambda comm: ft_on_grid(comm, (2, 2)),
    "ft 4x1": lambda comm: ft_on_grid(comm, (4, 1)),
    "lu uneven": lambda comm: uneven(comm, "lu"),
    "bt uneven": lambda comm: uneven(comm, "bt"),
    "sp uneven": lambda comm: uneven(comm, "sp"),
    "ft expects other sums": lambda comm: broken(comm, "ft", expecting("ft", sums=SUMS)),
    "ft turns nothing": lambda comm: broken(comm, "ft", patch.object(Turner, "_across", no_turn)),
    "lu has no ghosts": lambda comm: broken(
        comm, "lu", nothing(Messages, "exchange_x", "exchange_y")
    ),
    "bt expects other norms": lambda comm: broken(comm, "bt", expecting("bt", residual=NORMS)),
    "sp has no ghosts": lambda comm: broken(comm, "sp", nothing(Faces, "exchange")),
    "sp is whole": lambda comm: broken(comm, "sp", contextlib.nullcontext()),
}


def main(comm: Any) -> int:
    for what in sys.argv[1:]:
        result = CASES[what](comm) if what in CASES else class_s(comm, what)
        if comm.rank == 0:
            print(json.dumps({"case": what, **result}), flush=True)
    return 0


if __name__ == "__main__":
    run("cases", "single", main)
