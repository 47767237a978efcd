"""Binary interfaces (ABIs) of MPI libraries: which libraries can replace each other.

A program names the library that it was built for by a file name (``DT_NEEDED`` of its ELF file, or
of a library that it uses). Libraries of one binary interface have the same file name, so the loader
can give the program any of them. The constants of two interfaces differ: a program that was built
for one cannot run with a library of the other.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from runner.files.paths import file_state, real_path
from runner.mpi.output import output_of

LOADER_PATH = "LD_LIBRARY_PATH"
"""The variable with the folders that the loader searches first; only an RPATH precedes them."""


@dataclass(frozen=True)
class Abi:
    """A binary interface; ``pattern`` matches the whole names of its main library's file."""

    title: str
    pattern: str

    def matches(self, name: str) -> bool:
        """True if a program that needs the file ``name`` was built for this interface."""
        return re.fullmatch(self.pattern, name) is not None


MPICH_ABI = Abi("MPICH", r"lib(mpi|mpich)\.so\.12")
"""Shared by MPICH from 3.1 on, MVAPICH, Intel MPI and others."""
OPEN_MPI_ABI = Abi("Open MPI", r"libmpi\.so\.40")
STANDARD_ABI = Abi("the ABI of the MPI 5 standard", r"libmpi_abi\.so\.\d+")
"""A library of any family may provide it beside its own interface."""
ABIS = (MPICH_ABI, OPEN_MPI_ABI, STANDARD_ABI)

_LINE = re.compile(
    r"^\s*(?P<name>lib(?:mpi|mpich|mpi_abi)\.so\S*) => (?P<place>/\S+|not found)", re.MULTILINE
)


_MISSING = re.compile(r"^undefined symbol: (p?mpi_\w+)", re.MULTILINE | re.IGNORECASE)
"""A line of the loader's check of all names, for the names of MPI."""


@dataclass(frozen=True)
class NeededLibrary:
    """The main MPI library that a program needs: its file name and its path ("": not found)."""

    name: str
    place: str

    @property
    def abi(self) -> Abi | None:
        """The binary interface; None if it is none of the known ones."""
        return next((abi for abi in ABIS if abi.matches(self.name)), None)

    def is_file(self, path: Path) -> bool:
        """True if the loader finds exactly this file."""
        return bool(self.place) and real_path(self.place) == real_path(path)


def needed_library(words: Sequence[str], folders: Sequence[str] = ()) -> NeededLibrary | None:
    """The MPI library that the program of this command line needs; ``folders`` are searched first.

    None for a script, and for a program that names no MPI library: it is linked statically, or
    loads the library later, as Python does.
    """
    path = shutil.which(words[0]) if words else None
    return None if path is None else needed_by(path, folders)


def needed_by(file: str, folders: Sequence[str] = ()) -> NeededLibrary | None:
    """The MPI library that an ELF file needs, a program or a shared library; None if it needs none.

    The loader looks in ``folders`` first, then where it looks for a program of this environment.
    """
    return _library_of(file, joined_folders(folders, os.environ), file_state(file))


def missing_symbols(file: str, folders: Sequence[str]) -> list[str]:
    """The functions of MPI that an ELF file needs and the loader finds in no library.

    The loader looks in ``folders`` first. A file that was built for a newer series of its library
    may need some that an older one lacks.
    """
    env = {**os.environ, LOADER_PATH: joined_folders(folders, os.environ)}
    output = output_of(("ldd", "-r", file), env, whatever_code=True)
    return _MISSING.findall(output)


def is_elf(path: str) -> bool:
    """Whether a file is a program or shared library that can be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def joined_folders(folders: Sequence[str], environment: Mapping[str, str]) -> str:
    """The value of :data:`LOADER_PATH` with ``folders`` put before the existing ones."""
    before = environment.get(LOADER_PATH)
    return os.pathsep.join([*folders, *([before] if before else [])])


@lru_cache(maxsize=16)
def _library_of(program: str, folders: str, _state: Hashable) -> NeededLibrary | None:
    """As :func:`needed_by`; ``_state`` changes when the file is built again."""
    if not is_elf(program):
        return None
    env = {**os.environ, **({LOADER_PATH: folders} if folders else {})}
    match = _LINE.search(output_of(("ldd", program), env, whatever_code=True))
    if match is None:
        return None
    return NeededLibrary(match["name"], match["place"] if match["place"].startswith("/") else "")
