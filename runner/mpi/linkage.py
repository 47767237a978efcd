"""Linkage: the MPI library that a program loads by itself, and the installation that it is of.

A binary names the file of its library, and the loader finds it. A program of Python gets the
library from the mpi4py of its interpreter: one that was built for a library names it as a binary
does, and one from a wheel takes the library of its own environment first.

Nothing of the program is executed: the loader lists what a file needs, the library is asked for its
version, and the interpreter says where mpi4py is without importing it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from runner.files.paths import is_file, real_path
from runner.mpi.abi import NeededLibrary, is_elf, needed_by
from runner.mpi.base import PYTHON_LIBRARY
from runner.mpi.discover import LAUNCHERS, adapter, families, identify, libraries
from runner.mpi.library import Library
from runner.mpi.output import output_of

_VERSION = re.compile(
    r"(?P<family>Open MPI|MPICH|Intel\(R\) MPI Library)(?: Version:)?"
    r"\s+v?(?P<version>\d+(?:\.\d+)*)"
)
_FAMILIES = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel(R) MPI Library": "impi"}
_ASK = r"""import ctypes, re, sys
for name in sys.argv[1:]:
    try:
        ask = ctypes.CDLL(name).MPI_Get_library_version
    except (OSError, AttributeError):
        continue
    with open("/proc/self/maps") as maps:
        files = re.findall(r" (/.*/libmpi(?:ch)?\.so.*)", maps.read())
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
    ask(text, ctypes.byref(length))
    print(name if "/" in name else files[0] if files else "")
    print(text.value.decode(errors="replace"))
    break"""
"""The call that prints the version of the first of these files that is an MPI library, and its
place; MPI allows it before MPI_Init."""
_LEVELS = 4
"""Folders above a library's file in which its launcher is looked for."""


@dataclass(frozen=True)
class LinkedLibrary:
    """The MPI library of a program: its file, its family (as in :class:`Library`), its version."""

    place: str
    family: str
    version: str


@lru_cache(maxsize=8)
def identify_file(*places: str) -> LinkedLibrary | None:
    """The first of these files, or names for the loader, that is an MPI library; None if none is
    one, or if it does not say its version."""
    output = output_of((sys.executable, "-I", "-c", _ASK, *places), whatever_code=True)
    place, _, text = output.partition("\n")
    match = _VERSION.search(text)
    if not place or match is None:
        return None
    return LinkedLibrary(place, _FAMILIES[match["family"]], match["version"])


def installation_of(need: NeededLibrary) -> Library | None:
    """The installation, without its parameters, of the library that the loader finds for a program.

    One of those that are found has this file, or the launcher lies above the file, or one that is
    found has the same family and version. None if there is none, or if no library is found.
    """
    return _installation_of(need, os.environ.get("PATH")) if need.place else None


@lru_cache(maxsize=16)
def _installation_of(need: NeededLibrary, _path: str | None) -> Library | None:
    """As :func:`installation_of`, which depends on ``_path``; each launcher says its version."""
    installations = libraries()
    for library in installations:
        own = adapter(library)
        if need.abi is not None and not own.can_run(need.name):
            continue
        file = own.file_for(need.name)
        if file is not None and need.is_file(file):
            return library
    linked = identify_file(need.place)
    if linked is None:
        return None
    for library in (*_above(need.place), *installations):
        if (library.family, library.version) == (linked.family, linked.version):
            return library
    return None


def compatible(need: NeededLibrary) -> Library | None:
    """The first installation of the binary interface that a program needs; None if there is none.

    It is without its parameters.
    """
    if need.abi is None:
        return None
    for library in libraries():
        own = adapter(library)
        if own.abi is not None and own.can_run(need.name) and own.file_for(need.name) is not None:
            return library
    return None


def _above(place: str) -> Iterator[Library]:
    """The installations whose launcher is in a ``bin`` above a library's file."""
    names = (*LAUNCHERS, *(f"mpirun.{name}" for name in families()))
    above = [*Path(place).parents[:_LEVELS], *real_path(place).parents[:_LEVELS]]
    for folder in dict.fromkeys(above):
        for name in names:
            launcher = folder / "bin" / name
            if is_file(launcher) and (library := identify(launcher)) is not None:
                yield library


_FIND = """import importlib.util, json, site, sys
spec = importlib.util.find_spec("mpi4py")
print(json.dumps([list(spec.submodule_search_locations or []) if spec else [],
sys.exec_prefix, sys.base_exec_prefix, site.USER_BASE if site.ENABLE_USER_SITE else None]))"""
"""Where mpi4py is, without importing it, and the prefixes in which its wheel looks."""
_BUILT = re.compile(r"MPI(\.cpython-[^.]*|\.abi3|\.pypy[^.]*)?\.so")
"""The extension module of an mpi4py that was built for one library."""
_SONAMES = ("libmpi.so", "libmpi.so.12", "libmpi.so.40")
"""The names that mpi4py's wheel tries, in its order."""


def needed_by_python(python: Path) -> NeededLibrary | None:
    """The library that the mpi4py of an interpreter loads by itself.

    None if the interpreter has no mpi4py, or if no library is found for it. The variable of mpi4py
    that names a library counts.
    """
    located = _mpi4py(str(python), os.environ.get("PYTHONPATH"))
    if located is None:
        return None
    folder, prefixes = located
    built = _built_module(folder)
    if built is not None:
        return needed_by(str(built))
    inside = [str(prefix / "lib" / name) for prefix in prefixes for name in _SONAMES]
    named = os.environ.get(PYTHON_LIBRARY)
    linked = identify_file(*([named] if named else [*filter(is_elf, inside), *_SONAMES]))
    abi = families()[linked.family].abi if linked is not None else None
    if linked is None or abi is None:
        return None
    return NeededLibrary(next(name for name in _SONAMES if abi.matches(name)), linked.place)


def module_of_one_library(python: Path) -> Path | None:
    """The extension module of an interpreter's mpi4py if it was built for one library, as a binary
    is; None for the mpi4py of a wheel, and if there is none."""
    located = _mpi4py(str(python), os.environ.get("PYTHONPATH"))
    return None if located is None else _built_module(located[0])


def _built_module(folder: Path) -> Path | None:
    modules = sorted(folder.glob("MPI*.so"))
    return next((file for file in modules if _BUILT.fullmatch(file.name)), None)


@lru_cache(maxsize=8)
def _mpi4py(python: str, _path: str | None) -> tuple[Path, tuple[Path, ...]] | None:
    """The folder of an interpreter's mpi4py and the prefixes in which its wheel looks; None: none.

    ``_path`` is the variable with more folders of modules, on which the answer depends.
    """
    if python == sys.executable:
        spec = importlib.util.find_spec("mpi4py")
        user_base = site.USER_BASE if site.ENABLE_USER_SITE else None
        folders = list(spec.submodule_search_locations or ()) if spec else []
        prefix, base = sys.exec_prefix, sys.base_exec_prefix
    else:
        try:
            found = json.loads(output_of((python, "-c", _FIND), cwd=os.sep))
            folders, prefix, base, user_base = found
        except ValueError:
            return None
    if not folders:
        return None
    own = [prefix] if prefix != base else []
    prefixes = [*own, *([user_base] if user_base else []), base]
    return Path(folders[0]), tuple(Path(one) for one in prefixes if one != "/usr")
