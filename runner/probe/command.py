"""The command line of the small MPI program, for a library."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from runner import files
from runner.c_library import NoCompiler, code_folder, compile_if_missing, digest, sources_of
from runner.errors import RunnerUsageError
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.own_python import OWN_PYTHON

SMALL = ("--size", "8", "--count", "20")
_EMPTY = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"


def small_program(library: Library, operation: str, options: tuple[str, ...] = ()) -> list[str]:
    """A program that does 20 calls of an operation of :mod:`runner.programs.micro` on 8 bytes.

    ``options`` may name the ``--thread-level``. Raises RunnerUsageError if there is neither mpi4py
    nor a compiler of the library, and RunnerError if what is compiled cannot be stored.
    """
    words = [operation, *SMALL, *options]
    if _has_mpi4py():
        return [*OWN_PYTHON, "-m", "runner.programs.micro", *words]
    return [*OWN_PYTHON, "-m", "runner.probe", str(compiled_probe(library)), *words]


def empty_program(library: Library) -> list[str]:
    """A program that starts MPI, meets the other ranks and ends; raises as small_program."""
    if _has_mpi4py():
        return [*OWN_PYTHON, "-c", _EMPTY]
    return small_program(library, "barrier")


def compiled_probe(library: Library) -> Path:
    """The probe for a library, compiled with its ``mpicc`` if that was not done before.

    Raises as :func:`small_program`.
    """
    compiler = adapter(library).c_compiler()
    sources = sources_of("runner.probe")
    version = f"{library.family} {library.version}"
    name = f"libautotune-probe-{digest(sources, [version, library.bin, *compiler])}.so"
    try:
        if not compiler:
            raise NoCompiler(f"there is no mpicc in {library.bin}", code="compiler.no_mpicc")
        return compile_if_missing(code_folder(files.cache("probe")) / name, compiler, sources)
    except NoCompiler as problem:
        raise RunnerUsageError(
            f"a small MPI program is needed for {version}: it is compiled, but {problem}; or "
            'mpi4py runs it: pip install "mpi-autotune[programs]"',
            code="install.extra",
        ) from None


def _has_mpi4py() -> bool:
    return find_spec("mpi4py") is not None
