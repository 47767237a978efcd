"""Small C libraries of this package, compiled on first use and preloaded into ranks.

A library is compiled into the user's cache, under a name that depends on its sources and its
compiler. Several processes may build at the same time: each writes a separate file, and the last
one wins.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from runner.errors import RunnerError
from runner.files.private_files import FILE, has_private, private_folder

FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-shared")
LIBRARIES = ("-ldl", "-lpthread")
TIMEOUT_S = 120


class NoCompiler(RunnerError):
    """There is no compiler, or it cannot compile the library."""


def code_folder(place: Path) -> Path:
    """``place``, created if missing, for this user only.

    Raises RunnerError if it is not writable, or if others could change its content.
    """
    try:
        private_folder(place)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise RunnerError(
            f"cannot write {place}: {error.strerror}; expected a directory that every node "
            "can write (XDG_CACHE_HOME sets another)",
            code="compiler.unwritable",
        ) from None
    return place


def sources_of(package: str) -> dict[str, str]:
    """The C sources and headers in the folder ``native`` of a package: name -> text."""
    native = resources.files(package) / "native"
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(native.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith((".c", ".h"))
    }


def digest(sources: Mapping[str, str], words: Sequence[str]) -> str:
    """A hash of the sources and of everything else that affects the result."""
    checksum = hashlib.sha256("\0".join((*FLAGS, *words)).encode())
    for name, text in sources.items():
        checksum.update(f"\0{name}\0{text}".encode())
    return checksum.hexdigest()[:16]


def compile_if_missing(place: Path, compiler: Sequence[str], sources: Mapping[str, str]) -> Path:
    """The library at ``place``, compiled if missing.

    ``compiler`` is the beginning of the command. Raises NoCompiler if it is missing or refuses the
    sources, RunnerError if the result cannot be stored or others could change it.
    """
    try:
        private_folder(place.parent)
        if has_private(place):
            return place
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            _compile(compiler, sources, Path(work))
            (Path(work) / "library").chmod(FILE)
            (Path(work) / "library").replace(place)
    except OSError as error:
        raise RunnerError(
            f"{place} cannot be stored: {error.strerror}", code="compiler.unwritable"
        ) from None
    return place


def _compile(compiler: Sequence[str], sources: Mapping[str, str], work: Path) -> None:
    for name, text in sources.items():
        (work / name).write_text(text, encoding="utf-8")
    files = [name for name in sources if name.endswith(".c")]
    try:
        process = subprocess.run(
            [*compiler, *FLAGS, "-o", "library", *files, *LIBRARIES],
            cwd=work,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoCompiler(
            f"{compiler[0]} did not finish within {TIMEOUT_S} s", code="compiler.no_answer"
        ) from None
    except OSError as error:
        raise NoCompiler(
            f"{compiler[0]} cannot be started: {error.strerror}", code="compiler.no_answer"
        ) from None
    if process.returncode:
        hint = "" if shutil.which("cc") else " (it needs a C compiler, cc)"
        message = (process.stderr or process.stdout).strip()[:1500]
        names = ", ".join(files)
        raise NoCompiler(
            f"{compiler[0]} cannot compile {names}{hint}:\n{message}", code="compiler.refuses"
        )


def compiler() -> str | None:
    """The C compiler of this machine: ``$CC``, cc, gcc or clang; None if there is none."""
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def preload_value(library: Path, others: str | None) -> str:
    """The value of LD_PRELOAD: ``library``, then ``others``, which must be loaded, too.

    Raises RunnerError if the loader would not understand the path.
    """
    if set(" :,") & set(str(library)):
        raise RunnerError(
            f"a library that is preloaded into the ranks is in {library.parent}, but the path of a "
            "preloaded file must not contain blanks, colons or commas.\nSet XDG_CACHE_HOME to "
            "another directory",
            code="compiler.library_path",
        )
    return f"{library}:{others}" if others else str(library)
