"""The control variables of an MPI library, as MPI_T lists them in a process without a launcher.

MPICH and its derivatives allow MPI_T before MPI_Init, and read their environment at that moment. A
child process loads the library and lists the variables; another child lists them with other values.
Choices are named only in the descriptions, without their numbers. So the child sets each choice in
turn and reads its number.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import files
from runner.files.json_text import parse_json
from runner.files.private_files import read_private, write_private
from runner.mpi.library import ParamInfo

TIMEOUT_S = 30
_FORMAT = 1
"""Changes with the meaning of the stored lists."""
_MOST_BYTES = 8 << 20
_BASIC = 221
"""MPI_T_VERBOSITY_USER_BASIC of MPICH and its derivatives: the lowest of nine."""
_MOST_ENDS = 4
_TEXT = re.compile(rb"\w{2,80}(?=\0)")
_WORD = re.compile("[A-Za-z]+")
_CHOICE_NAME = re.compile(r"([A-Za-z]\w*)\s+-\s")
_CHILD = r"""
import ctypes, json, os, sys
library = ctypes.CDLL(sys.argv[1])
tries = json.loads(sys.stdin.read())
INT = ctypes.c_int
# The datatypes of the ABI of MPICH; their names cannot be asked for before MPI_Init.
TYPES = {
    0x4C000101: "MPI_CHAR",
    0x4C000405: "MPI_INT",
    0x4C000406: "MPI_UNSIGNED",
    0x4C00080B: "MPI_DOUBLE",
}

def variables(values):
    os.environ.update(values)
    number, given = INT(), INT()
    if library.MPI_T_init_thread(0, ctypes.byref(given)):
        return None
    library.MPI_T_cvar_get_num(ctypes.byref(number))
    found = []
    for index in range(number.value):
        name, text = ctypes.create_string_buffer(512), ctypes.create_string_buffer(16384)
        room, text_room, level, bind, scope, count = (INT(n) for n in (512, 16384, 0, 0, 0, 0))
        kind, enum, handle = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_void_p()
        told = [name, room, level, kind, enum, text, text_room, bind, scope]
        told = [t if isinstance(t, ctypes.Array) else ctypes.byref(t) for t in told]
        if library.MPI_T_cvar_get_info(index, *told):
            continue
        if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)):
            continue
        value = ctypes.create_string_buffer(16384)
        library.MPI_T_cvar_read(handle, value)
        label = TYPES.get(kind.value, "MPI_LONG_LONG")
        if label == "MPI_CHAR":
            shown = value.value.decode(errors="replace")
        elif label == "MPI_DOUBLE":
            shown = repr(ctypes.c_double.from_buffer(value).value)
        elif label in ("MPI_INT", "MPI_UNSIGNED"):
            numbers = (INT * count.value).from_buffer(value)
            shown = ":".join(map(str, numbers))
        else:
            shown = str(ctypes.c_longlong.from_buffer(value).value)
        text = text.value.decode(errors="replace")
        found.append([name.value.decode(), label, count.value, level.value, shown, text])
    return found

# The variables, from a child of its own: MPI_T reads the environment once in a process.
def asked(values):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as file:
            json.dump(variables(values), file)
            file.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None

# The rows of those variables that accept their value.
def accepted(values):
    rows = asked(values)
    if rows is not None:
        return [row for row in rows if row[0] in values]
    names = sorted(values)
    if len(names) < 2:
        return []
    half = len(names) // 2
    parts = names[:half], names[half:]
    return [row for part in parts for row in accepted({name: values[name] for name in part})]

for values in tries:
    print(json.dumps(accepted(values) if values else asked(values)), flush=True)
"""


@dataclass(frozen=True)
class _Variable:
    """One control variable: ``kind`` is its MPI datatype, ``value`` as text."""

    name: str
    kind: str
    count: int
    level: int
    value: str
    text: str


def list_variables(
    path: Path, tries: Iterable[Mapping[str, str]], environment: Mapping[str, str]
) -> list[dict[str, _Variable] | None]:
    """The variables of the library at ``path``, once for each of ``tries``: values to set.

    Without values all variables are listed (None if MPI_T does not start), with values only the
    variables that accept theirs. The list is empty if the library cannot be loaded or prints
    nothing.
    """
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, str(path)],
            input=json.dumps([dict(values) for values in tries]),
            env=dict(environment),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        lists: list[dict[str, _Variable] | None] = []
        for line in process.stdout.splitlines():
            rows = parse_json(line)
            lists.append(rows and {row[0]: _Variable(*row) for row in rows})
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError):
        return []
    return lists


def read_parameters(path: Path, environment: Mapping[str, str]) -> dict[str, ParamInfo]:
    """The parameters of the library at ``path`` with their own defaults; {} if it lists none.

    ``environment`` has no settings of the library. The list is cached: making it takes 0.2 s.
    """
    place = files.cache_about(path, "mpi-t", _FORMAT)
    if place is None:
        return {}
    rows = _read_cache(place)
    if rows is None:
        rows = _rows(path, environment)
        if rows:
            with suppress(OSError):
                write_private(place, json.dumps(rows))
    return {row[0]: _info(*row) for row in rows}


def _info(
    name: str, kind: str, value: str, level: int, text: str, enum: Mapping[str, str]
) -> ParamInfo:
    # A choice accepts only names; a number stops the job.
    words = kind == "MPI_CHAR" or bool(enum)
    return ParamInfo(
        name=name,
        type="string" if words else "double" if kind == "MPI_DOUBLE" else "int",
        default=enum.get(value, value),
        level=level,
        help=text,
        enum={int(number): word for number, word in enum.items()},
        by_name=bool(enum),
    )


def _read_cache(place: Path) -> list[Any] | None:
    """The rows in the cache, checked; None if there are none."""
    try:
        rows = parse_json(read_private(place, _MOST_BYTES))
        for name, kind, value, level, text, enum in rows:
            if not all(isinstance(word, str) for word in (name, kind, value, text)):
                return None
            if not isinstance(level, int) or not all(number.isdigit() for number in enum):
                return None
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return list(rows)


def _rows(path: Path, environment: Mapping[str, str]) -> list[Any]:
    plain = list_variables(path, [{}], environment)
    if not plain or plain[0] is None:
        return []
    variables = plain[0]
    numbers = _choices(path, variables, environment)
    return [
        [
            v.name,
            v.kind if v.count == 1 or v.kind == "MPI_CHAR" else "MPI_CHAR",
            v.value,
            min(9, max(1, v.level - _BASIC + 1)),
            v.text,
            numbers.get(v.name, {}),
        ]
        for v in variables.values()
    ]


def _choices(
    path: Path, variables: Mapping[str, _Variable], environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """The names of each choice variable by number.

    Each step sets all variables at once: to their first name, then to their second, and so on.
    """
    # Linkers store a text that is the end of another text only as part of it.
    whole = {word.decode() for word in _TEXT.findall(path.read_bytes())}
    texts = frozenset(word[k:] for word in whole for k in range(len(word)))
    vocabulary = frozenset(word for v in variables.values() for word in _WORD.findall(v.text))
    names = {
        v.name: words
        for v in variables.values()
        if v.kind == "MPI_INT"
        and v.count == 1
        and len(words := _words(v.text, texts, vocabulary)) > 1
    }
    most = max((len(words) for words in names.values()), default=0)
    columns = [
        {name: words[k] for name, words in names.items() if k < len(words)} for k in range(most)
    ]
    answers = list_variables(path, columns, environment)
    pairs = [
        (name, variable.value, column[name])
        for column, answer in zip(columns, answers, strict=False)
        for name, variable in (answer or {}).items()
    ]
    names_by_number: dict[str, dict[str, str]] = {}
    for name, number, word in pairs:
        names_by_number.setdefault(name, {}).setdefault(number, word)
    return {name: numbers for name, numbers in names_by_number.items() if len(numbers) > 1}


def _words(text: str, texts: frozenset[str], vocabulary: frozenset[str]) -> list[str]:
    """The names of choices in a description: ``NAME - what it means``, one a line.

    MPICH 4.0 dropped the line ends, so a name may be joined to the previous word. Then any suffix
    that is in the library's ``texts`` and follows a word of the descriptions (``vocabulary``) is a
    candidate; the library refuses the wrong ones.
    """
    names = []
    for word in _CHOICE_NAME.findall(text):
        if re.search(rf"^\s*{re.escape(word)}\s+-\s", text, re.MULTILINE):
            names.append(word)
            continue
        places = [k for k in range(len(word)) if word[k:] in texts]
        likely = [k for k in places if not k or word[:k] in vocabulary]
        names += [word[k:] for k in (likely or places)[:_MOST_ENDS]]
    return list(dict.fromkeys(names))


def environment_without(prefixes: tuple[str, ...]) -> dict[str, str]:
    """This process's environment without the variables that start with one of ``prefixes``."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
