"""The profiling library: compiled on first use, and whether a program can load it.

It is compiled with the ``mpicc`` of the MPI library into the user's cache. There is one profiling
library per MPI library (version, place, header) and source text. Several processes may build at the
same time: each writes a file of its own, and the last one replaces it completely.

A statically linked program has no dynamic loader and cannot load it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from runner import files
from runner.errors import RunnerError
from runner.files import refuse_others
from runner.mpi.library import Library

FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-shared")
LIBRARIES = ("-ldl", "-lpthread")
_TIMEOUT_S = 120


class NoCompiler(RunnerError):
    """This MPI library has no working mpicc; the substitute for mpi4py may still count."""


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/autotune/trace``, or below ``~/.cache``."""
    return files.cache("trace")


def make_cache() -> Path:
    """The cache directory, made if it is missing; raises RunnerError if it cannot be written."""
    place = cache_dir()
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise RunnerError(
            f"cannot write {place}: {error.strerror}; expected a directory that every node "
            "can write (XDG_CACHE_HOME sets another)"
        ) from None
    return place


def profiling_library(library: Library, tell: Callable[[str], None] = lambda words: None) -> Path:
    """The compiled profiling library for an MPI library; ``tell`` is called before it is compiled.

    Raises NoCompiler if the mpicc is missing or cannot compile it, and RunnerError if the result
    cannot be stored.
    """
    compiler = Path(library.bin) / "mpicc"
    if not os.access(compiler, os.X_OK):
        raise NoCompiler(f"{library.family} {library.version} has no mpicc in {library.bin}")
    sources = _sources()
    place = make_cache() / f"libautotune-trace-{_digest(sources, library)}.so"
    refuse_others(place.parent, place)
    if place.is_file():
        return place
    tell(f"compiling the profiling library for {library.family} {library.version} (once)")
    try:
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            _compile(str(compiler), sources, Path(work))
            (Path(work) / "library").replace(place)
    except OSError as error:
        raise RunnerError(
            f"the profiling library cannot be stored in {place.parent}: {error.strerror}"
        ) from None
    return place


def _sources() -> dict[str, str]:
    native = resources.files("runner.trace") / "native"
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(native.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith((".c", ".h"))
    }


def _digest(sources: dict[str, str], library: Library) -> str:
    """A hash of sources and MPI library; another installation in the same place changes it."""
    place = Path(library.bin).resolve()
    words = [*FLAGS, library.family, library.version, str(place)]
    for path in (place / "mpicc", *sorted((place.parent / "lib").glob("libmpi.so*"))):
        if path.exists():
            state = path.stat()
            words += [path.name, str(state.st_size), str(state.st_mtime_ns)]
    digest = hashlib.sha256("\0".join(words).encode())
    for name, text in sources.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:16]


def _compile(compiler: str, sources: dict[str, str], work: Path) -> None:
    for name, text in sources.items():
        (work / name).write_text(text, encoding="utf-8")
    files = [name for name in sources if name.endswith(".c")]
    try:
        done = subprocess.run(
            [compiler, *FLAGS, "-o", "library", *files, *LIBRARIES],
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoCompiler(f"{compiler} did not finish within {_TIMEOUT_S} s") from None
    if done.returncode:
        hint = "" if shutil.which("cc") else " (it needs a C compiler, cc)"
        said = (done.stderr or done.stdout).strip()[:1500]
        raise NoCompiler(f"{compiler} cannot compile the profiling library{hint}:\n{said}")


_INTERPRETER = 3  # PT_INTERP
_WIDE, _NARROW = 2, 1


def statically_linked(program: Path) -> bool:
    """True for an ELF executable without a dynamic loader; False for all other files (scripts)."""
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if len(head) < 52 or head[:4] != b"\x7fELF" or head[4] not in (_WIDE, _NARROW):
                return False
            order = "<" if head[5] == 1 else ">"
            offset_at, offset_form, sizes_at = (32, "Q", 54) if head[4] == _WIDE else (28, "I", 42)
            (offset,) = struct.unpack_from(order + offset_form, head, offset_at)
            size, count = struct.unpack_from(order + "HH", head, sizes_at)
            file.seek(offset)
            table = file.read(size * count)
        kinds = [struct.unpack_from(order + "I", table, at * size)[0] for at in range(count)]
    except (OSError, struct.error):
        return False
    return _INTERPRETER not in kinds
