"""Start and end of an application under MPI, shared by all applications.

mpi4py is imported inside functions, because its import calls MPI_Init. MPI_Init must come after the
options are read (they decide the thread level), and tools and tests never need it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

from runner.errors import RunnerError
from runner.files.closed_output import drop_output
from runner.programs.apps.common.errors import AppError
from runner.runtimes.workers.thread_level import require_level

T = TypeVar("T")


class Helpful(Protocol):
    """Options that may request a text instead of a run."""

    @property
    def help(self) -> str | None: ...


def single_threaded_blas() -> None:
    """Keep numpy from starting a thread per core in every rank; call before importing numpy.

    numpy's BLAS library reads one of these variables.
    """
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def start(threads: str) -> Any:
    """MPI_Init with a thread level of mpi4py ("single", ..., "multiple"); returns the world."""
    import mpi4py

    mpi4py.rc.thread_level = threads
    from mpi4py import MPI

    return MPI.COMM_WORLD


def agree(comm: Any, action: Callable[[], T]) -> T:
    """Run ``action`` on every rank; if it fails on any, all raise the same :class:`AppError`.

    Without this, a rank that cannot continue (a full disk, a kernel that does not compile) would
    leave the others waiting. Collective.
    """
    outcome: T | RunnerError
    try:
        outcome = action()
    except RunnerError as error:
        outcome = error
    failure = outcome if isinstance(outcome, RunnerError) else None
    report = (
        None if failure is None else (getattr(failure, "exit_code", 1), failure.code, str(failure))
    )
    failures = [f for f in comm.allgather(report) if f is not None]
    if isinstance(outcome, RunnerError) or failures:
        exit_code, code, message = failures[0]
        common_error = AppError(message, code=code)
        common_error.exit_code = exit_code
        raise common_error
    return outcome


def print_help(comm: Any, options: Helpful) -> bool:
    """Print the requested help on rank 0; returns True if it was requested."""
    if options.help is not None and comm.rank == 0:
        print(options.help, flush=True)
    return options.help is not None


def require_funneled_level(variant: str) -> None:
    """Refuse a variant with threads if MPI did not grant their level.  Raises :class:`AppError`."""
    require_level("funneled", f"--variant {variant}", AppError)


def run(name: str, threads: str, body: Callable[[Any], int]) -> NoReturn:
    """Start MPI, call ``body(world)`` on every rank and end the process with its return value.

    An :class:`AppError`, which must occur on all ranks, is printed once by rank 0. Any other
    exception ends all ranks: the traceback is printed and MPI_Abort called, because the other ranks
    would wait for ever.
    """
    comm = start(threads)
    try:
        code = body(comm)
    except AppError as error:
        code = error.exit_code
        if comm.rank == 0:
            print(f"{name}: error: {error}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        code = 1
        drop_output()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        comm.Abort(1)
    # The launcher kills the other ranks when the first rank ends with an error, so no rank leaves
    # before rank 0 has printed.
    comm.Barrier()
    sys.exit(code)
