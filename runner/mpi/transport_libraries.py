"""The variables of UCX and libfabric, which carry messages below the MPI libraries.

Both list their own variables with types, defaults and descriptions. A child process loads the
library's file and asks it, because an installation may have the library without its commands
(``ucx_info``, ``fi_info``), and because an MPI library may bring its own.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner import files
from runner.files.json_text import parse_json
from runner.files.paths import is_file
from runner.files.private_files import read_private, write_private
from runner.mpi.library import Library, ParamInfo
from runner.mpi.mpi_t import environment_without
from runner.mpi.output import output_of

UCX, LIBFABRIC = "UCX", "libfabric"
PREFIXES = {UCX: "UCX_", LIBFABRIC: "FI_"}
"""The prefix of the variables of each library."""
FILE_NAMES = {UCX: "libucp.so.0", LIBFABRIC: "libfabric.so.1"}
_FORMAT = 1
"""Changes with the meaning of the stored lists."""
_MOST_BYTES = 4 << 20
_SUBFOLDERS = (".", "openmpi", "../opt/mpi/libfabric/lib", "../libfabric/lib")
"""Folders, below those of an MPI library, in which its own libraries may be."""
_UCX_CHILD = r"""
import ctypes, sys
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
components, number = ctypes.c_void_p(), ctypes.c_uint()
library.uct_query_components(ctypes.byref(components), ctypes.byref(number))
tables = ctypes.c_void_p.in_dll(library, "ucs_config_global_list")
system = ctypes.CDLL(None)
system.fdopen.restype = ctypes.c_void_p
output = ctypes.c_void_p(system.fdopen(1, b"w"))
# Names and values, their documentation, and those that are hidden; no filter of newer versions.
library.ucs_config_parser_print_all_opts(output, b"UCX_", 1 | 4 | 8, ctypes.byref(tables), None)
system.fflush(output)
"""
_LIBFABRIC_CHILD = r"""
import ctypes, json, sys
class Row(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int),
                ("text", ctypes.c_char_p), ("value", ctypes.c_char_p)]
library = ctypes.CDLL(sys.argv[1])
rows, number = ctypes.POINTER(Row)(), ctypes.c_int()
library.fi_getparams(ctypes.byref(rows), ctypes.byref(number))
texts = [[row.name, row.text] for row in rows[: number.value]]
print(json.dumps([[t.decode(errors="replace") if t else "" for t in pair] + [row.kind]
                  for pair, row in zip(texts, rows[: number.value])]))
"""
_FI_TYPES = {0: "string", 1: "int", 2: "bool", 3: "size_t"}
_FI_DEFAULT = re.compile(r"\(default: *([^()]*?)\.?\)")
_UCX_LINE = re.compile(r"(UCX_\w+)=(.*)")
_UCX_SYNTAX = re.compile(r"syntax: +(.*)")
_CHOICE = re.compile(r"(?:comma-separated list of: *)?\[([^\]]+)\]")


@dataclass(frozen=True)
class TransportLibrary:
    """A transport library: ``name`` (UCX, libfabric), its file, and its variables by name."""

    name: str
    file: str
    params: Mapping[str, ParamInfo]


def transport_libraries(library: Library) -> Iterator[TransportLibrary]:
    """UCX and libfabric as an MPI library loads them: its own, else the system's; none if they are
    not installed."""
    for name, file_name in FILE_NAMES.items():
        places = (folder / sub / file_name for folder in library.folders for sub in _SUBFOLDERS)
        place = next((path for path in places if is_file(path)), None)
        file = str(place) if place is not None else _found_by_loader(file_name)
        if file and (params := read_variables(name, Path(file))):
            yield TransportLibrary(name, file, params)


def read_variables(name: str, file: Path) -> dict[str, ParamInfo]:
    """The variables of UCX or libfabric in this file; {} if it lists none.

    The list is cached: making it takes 0.1 s.
    """
    place = files.cache_about(file, "transport-variables", _FORMAT)
    text = "" if place is None else _stored(place)
    if not text:
        child = _UCX_CHILD if name == UCX else _LIBFABRIC_CHILD
        environment = environment_without((PREFIXES[name],))
        # UCX may end by a signal after it has printed everything.
        text = output_of(
            (sys.executable, "-I", "-c", child, str(file)), environment, whatever_code=True
        )
        if text and place is not None:
            with suppress(OSError):
                write_private(place, json.dumps(text))
    return parse_ucx(text) if name == UCX else parse_libfabric(text)


def _stored(place: Path) -> str:
    """The text in the cache; "" if there is none."""
    try:
        text = parse_json(read_private(place, _MOST_BYTES))
    except (OSError, ValueError):
        return ""
    return text if isinstance(text, str) else ""


def _found_by_loader(file_name: str) -> str:
    """The path of the file that the loader finds under this name; "" if there is none."""
    folders = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
    places = (path for folder in folders for path in _in_folder(Path(folder), file_name))
    return next((str(path) for path in places if is_file(path)), "")


def _in_folder(folder: Path, file_name: str) -> Iterator[Path]:
    yield folder / file_name
    yield from sorted(folder.glob(f"*-linux-gnu*/{file_name}"))


def parse_ucx(text: str) -> dict[str, ParamInfo]:
    """The variables in the configuration that UCX prints; comments above a line describe it."""
    params: dict[str, ParamInfo] = {}
    comments: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            comments.append(line[1:].strip())
        elif match := _UCX_LINE.fullmatch(line.strip()):
            params[match[1]] = _ucx_info(match[1], match[2], comments)
            comments = []
        else:
            comments = []
    return params


def _ucx_info(name: str, default: str, comments: list[str]) -> ParamInfo:
    syntax = next((m[1] for c in comments if (m := _UCX_SYNTAX.fullmatch(c))), "string")
    text = " ".join(c for c in comments if c and not _UCX_SYNTAX.fullmatch(c))
    kinds = {"<y|n>": "bool", "unsigned": "unsigned", "int": "int", "double": "double"}
    # A list of choices may be negated or extended, so only a single choice is an enumeration.
    choice = _CHOICE.fullmatch(syntax)
    is_single = choice is not None and not syntax.startswith("comma")
    words = choice[1].split("|") if choice is not None else []
    kind = next((k for s, k in kinds.items() if syntax.startswith(s)), "string")
    return ParamInfo(
        name=name,
        type="string" if choice else kind,
        default=default,
        framework=UCX,
        help=f"{text} ({syntax})" if syntax != "string" else text,
        enum=dict(enumerate(words)) if is_single else {},
        by_name=is_single,
    )


def parse_libfabric(text: str) -> dict[str, ParamInfo]:
    """The variables in the rows [name, description, type] that the child prints."""
    try:
        rows = parse_json(text)
        return {row[0]: _fi_info(*row) for row in rows}
    except (ValueError, TypeError, LookupError):
        return {}


def _fi_info(name: str, text: str, kind: int) -> ParamInfo:
    default = _FI_DEFAULT.search(text)
    return ParamInfo(
        name=name,
        type=_FI_TYPES.get(kind, "string"),
        # Several words describe a default that is no fixed value.
        default=default[1] if default and " " not in default[1] else "",
        framework=LIBFABRIC,
        help=" ".join(text.split()),
    )
