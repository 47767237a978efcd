"""Compiles the profiling library on first use, and checks if a program can load it.

It is compiled with the ``mpicc`` of the MPI library into the user's cache
(:mod:`runner.c_library`). There is one profiling library per MPI library (version, path, header)
and source text.

A statically linked program has no dynamic loader and cannot load it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from runner import files
from runner.c_library import NoCompiler, code_folder, compile_if_missing, digest, sources_of
from runner.files.paths import exists, real_path
from runner.files.private_files import has_private
from runner.mpi.discover import adapter
from runner.mpi.library import Library


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/autotune/trace``, or below ``~/.cache``."""
    return files.cache("trace")


def make_cache() -> Path:
    """The cache directory, created if missing; raises RunnerError if it is not writable."""
    return code_folder(cache_dir())


def profiling_library(library: Library, tell: Callable[[str], None] = lambda words: None) -> Path:
    """The compiled profiling library for an MPI library; ``tell`` is called before it is compiled.

    Raises NoCompiler if the mpicc is missing or cannot compile it, and RunnerError if the result
    cannot be stored.
    """
    compiler = adapter(library).c_compiler()
    if not compiler:
        raise NoCompiler(
            f"{library.family} {library.version} has no mpicc in {library.bin}",
            code="compiler.no_mpicc",
        )
    sources = sources_of("runner.trace")
    name = digest(sources, _state(library, compiler))
    place = make_cache() / f"libautotune-trace-{name}.so"
    if not has_private(place):
        tell(f"compiling the profiling library for {library.family} {library.version} (once)")
    return compile_if_missing(place, compiler, sources)


def _state(library: Library, compiler: Sequence[str]) -> list[str]:
    """The data that distinguish an installation from another at the same path."""
    place = real_path(library.bin)
    words = [library.family, library.version, str(place), *compiler]
    for path in (Path(compiler[0]), *sorted((place.parent / "lib").glob("libmpi.so*"))):
        if exists(path):
            state = path.stat()
            words += [path.name, str(state.st_size), str(state.st_mtime_ns)]
    return words


_INTERPRETER = 3  # PT_INTERP
_WIDE, _NARROW = 2, 1


def is_static(program: Path) -> bool:
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
