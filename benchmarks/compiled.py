"""C programs of the benchmarks, compiled on the spot."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import WorkError
from runner.mpi.discover import adapter
from runner.mpi.library import Library

REFERENCES = Path(__file__).parent / "references"
FLAGS = ("-O3", "-std=c11", "-Wall", "-ffp-contract=off", "-pthread")
"""No fused operations: every version computes the same bits."""
FASTEST = ("-O3", "-march=native", "-Wall")
"""As a user compiles for speed: a baseline must not be slow."""
TIMEOUT_S = 120.0


class NoCompiler(WorkError):
    """A C program cannot be compiled here; the text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="benchmark.compiler")


def compiled_for(
    library: Library,
    source: Path,
    place: Path,
    flags: Sequence[str] = FLAGS,
    more: Sequence[str] = (),
) -> Path:
    """A C program that uses this MPI library, in the directory ``place``.

    It is compiled by the library's mpicc or, if there is none, by cc with the library's header.
    ``more`` words come after the source: the libraries that it is linked with.
    Raises :class:`NoCompiler` if that is not possible.
    """
    own = Path(library.bin)
    # The adapter knows whether the library's own command works; else it names cc and the header.
    words = adapter(library).c_compiler()
    wrapper = next((word for word in words[:1] if Path(word).name.startswith("mpicc")), None)
    header, libraries = own.parent / "include", own.parent / "lib"
    program = place / source.stem
    if wrapper is not None:
        return _compile([wrapper, *flags], source, program, *more)
    if not (header / "mpi.h").is_file():
        raise NoCompiler(f"{library.family} {library.version} has neither mpicc nor mpi.h")
    linked = [f"-I{header}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    return _compile([_cc(), *flags, *linked], source, program, *more, "-lmpi")


def compiled_library(source: Path, place: Path, *more: str) -> Path:
    """A C file without MPI as a shared library in ``place``; raises :class:`NoCompiler`."""
    words = [_cc(), *FLAGS, "-fPIC", "-shared"]
    return _compile(words, source, place / f"{source.stem}.so", *more)


def _cc() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise NoCompiler("no compiler")
    return found


def _compile(words: list[str], source: Path, result: Path, *more: str) -> Path:
    _cc()  # A wrapper without a compiler says less.
    line = [*words, "-o", str(result), str(source), *more]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoCompiler(f"{words[0]} cannot compile {source.name}: {said[-1] if said else ''}")
    return result
