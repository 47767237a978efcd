"""The MPI library that a program was linked with, as the loader would find it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_LIBRARY = re.compile(r"^\s*lib(?:mpi|mpich)\.so\S* => (?P<place>/\S+)", re.MULTILINE)
_VERSION = re.compile(r"(?P<family>Open MPI|MPICH)(?: Version:)?\s+v?(?P<version>\d+(?:\.\d+)*)")
_FAMILIES = {"Open MPI": "openmpi", "MPICH": "mpich"}
_ASK = """import ctypes, sys
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))"""
"""MPI allows this call before MPI_Init."""
_PATIENCE_S = 10


@dataclass(frozen=True)
class Linked:
    """An MPI library's file, its family as :class:`Library` names it, and its version."""

    place: str
    family: str
    version: str


def linked_with(words: Sequence[str]) -> Linked | None:
    """What the program of this command line was linked with; None for a script, or where it cannot
    be told.

    It is what the loader finds without the launcher, which may put its own library before it.
    """
    found = shutil.which(words[0]) if words else None
    return None if found is None else _linked(found)


@lru_cache(maxsize=8)
def _linked(program: str) -> Linked | None:
    with Path(program).open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    match = _LIBRARY.search(_said("ldd", program))
    return None if match is None else _identified(match["place"])


def _identified(place: str) -> Linked | None:
    match = _VERSION.search(_said(sys.executable, "-I", "-c", _ASK, place))
    return match and Linked(place, _FAMILIES[match["family"]], match["version"])


def _said(*words: str) -> str:
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
