"""The values in force in the MPI library of rank 0, reported by a library preloaded there.

The report has the control variables of MPI_T, and the environment variables as the libraries in the
rank (MPI, UCX, libfabric) read them (native/control_variables.c says why both). It serves MPICH and
its derivatives. It needs a C compiler once, and a dynamically linked program.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from runner import files
from runner.c_library import (
    code_folder,
    compile_if_missing,
    compiler,
    digest,
    preload_value,
    sources_of,
)
from runner.errors import RunnerError
from runner.files.paths import exists
from runner.mpi.library import Library, same_value
from runner.types import ReadBack

REPORT = "control-variables.txt"
"""The report's name in the folder of the read-back files."""
LOAD_MARK = f"{REPORT}.loaded"
"""This file exists once a process has loaded the library."""
PRELOAD = "LD_PRELOAD"
_FILE, _WATCH_LIST = "AUTOTUNE_CONTROL_VARIABLES", "AUTOTUNE_WATCHED_VARIABLES"
_WAIT = "AUTOTUNE_WAIT_FOR_LOOK"
_BELOW = {"UCX_": ("UCX", "UCX_TLS"), "FI_": ("libfabric", "FI_PROVIDER")}
"""Prefix of the variables of a library below MPI -> its name, and a variable it always reads."""
_MOST_BYTES = 1 << 20


@cache
def reporting_library() -> Path | None:
    """The compiled library; None without a compiler or a usable folder."""
    path = compiler()
    if path is None:
        return None
    sources = sources_of("runner.mpi")
    try:
        folder = code_folder(files.cache("control-variables"))
        place = folder / f"libautotune-variables-{digest(sources, [path])}.so"
        return compile_if_missing(place, [path], sources)
    except RunnerError:
        return None


def report_variables(
    scratch: Path, watch_list: Iterable[str], preload: str | None, wait_for_look: bool = False
) -> dict[str, str]:
    """Variables that make the ranks report below ``scratch``; empty if they cannot.

    ``watch_list`` are names of environment variables; ``preload`` is the ranks' LD_PRELOAD without
    the report. With ``wait_for_look``, rank 0 waits after the report until the supervisor has
    looked at the ranks.
    """
    library = reporting_library()
    if library is None:
        return {}
    names = sorted({name for name in watch_list if ":" not in name})
    try:
        return {
            PRELOAD: preload_value(library, preload),
            _FILE: str(scratch / REPORT),
            _WATCH_LIST: ":".join([*(always for _, always in _BELOW.values()), *names]),
            **({_WAIT: "1"} if wait_for_look else {}),
        }
    except RunnerError:
        return {}


@dataclass(frozen=True)
class RankReport:
    """What the ranks reported.

    ``is_loaded``: a process of the job loaded the library. ``is_initialised``: rank 0 completed
    MPI_Init. ``path`` and ``version``: the file of the MPI library, and the version text it
    reports. ``numbers`` and ``texts`` are the control variables by type, ``reads`` the environment
    variables: the value (None if not set) and the library that read it.
    """

    is_loaded: bool = False
    is_initialised: bool = False
    world_size: int | None = None
    path: str = ""
    version: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)

    def state(self, name: str, value: str, library: Library) -> ReadBack:
        """State of one requested variable."""
        info = library.params.get(name)
        if name in self.numbers:
            number = self.numbers[name]
            choice = info.enum.get(int(number), number) if info and info.enum else number
            same = same_value(value, number, info)
            return ReadBack("in force" if same else "altered", value, choice, "MPI_T")
        if name in self.reads:
            text, by = self.reads[name]
            if text == value:
                return ReadBack("in force", value, text, f"read by {by}")
            return ReadBack("altered", value, "(not set)" if text is None else text, by)
        if name in self.texts or info is not None:
            return ReadBack("inactive", value, source="the library did not ask for it in this run")
        below = (about for prefix, about in _BELOW.items() if name.startswith(prefix))
        part, always = next(below, ("", ""))
        if not part:
            return ReadBack("unknown", value)
        did = "did not ask for it" if always in self.reads else "has no part"
        return ReadBack("inactive", value, source=f"{part} {did} in this run")


def belongs_below(name: str) -> bool:
    """True if the variable belongs to UCX or libfabric."""
    return name.startswith(tuple(_BELOW))


def read_report(scratch: Path) -> RankReport:
    """The report below ``scratch``; an empty one if there is none. Malformed lines are left out."""
    is_loaded = exists(scratch / LOAD_MARK)
    try:
        with (scratch / REPORT).open("rb") as file:
            text = file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return RankReport(is_loaded)
    words: dict[str, str] = {}
    numbers: dict[str, str] = {}
    texts: dict[str, str] = {}
    reads: dict[str, tuple[str | None, str]] = {}
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        if kind == "asked":
            name, _, source = rest.partition(" ")
            by, sign, value = source.partition("=")
            reads[name] = (_plain(value) if sign else None, by)
        elif kind.startswith("MPI_"):
            name, sign, value = rest.partition("=")
            if sign:
                (texts if kind == "MPI_CHAR" else numbers)[name] = _plain(value)
        else:
            words.setdefault(kind, rest)
    size = words.get("world", "")
    return RankReport(
        is_loaded=is_loaded,
        is_initialised="initialised" in words,
        world_size=int(size) if size.isascii() and size.isdigit() and len(size) < 10 else None,
        path=words.get("library", ""),
        version=" ".join(words.get("version", "").split()),
        numbers=numbers,
        texts=texts,
        reads=reads,
    )


def _plain(text: str) -> str:
    r"""The value before line ends and backslashes were written as ``\n`` and ``\\``."""
    return text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")


def preload_among(words: Iterable[str], variables: Mapping[str, str]) -> str | None:
    """The libraries that a launch already preloads: the last ``LD_PRELOAD VALUE`` or
    ``LD_PRELOAD=VALUE`` of its arguments, else that of ``variables``, else that of this process."""
    preload = variables.get(PRELOAD, os.environ.get(PRELOAD))
    previous = ""
    for word in words:
        if previous == PRELOAD:
            preload = word
        elif word.startswith(f"{PRELOAD}="):
            preload = word.partition("=")[2]
        previous = word
    return preload
