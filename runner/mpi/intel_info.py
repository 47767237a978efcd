"""The variables of Intel MPI, as its command ``impi_info`` lists and describes them.

This library's MPI_T does not work outside of a launcher, and ``impi_info`` knows more: the range of
a choice and the words that a variable takes. Its output is data: malformed lines are left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runner import files
from runner.files.json_text import parse_json
from runner.files.private_files import read_private, write_private
from runner.mpi.library import ParamInfo
from runner.mpi.output import output_of

COMMAND = "impi_info"
TIMEOUT_S = 30
_FORMAT = 1
"""Changes with the meaning of the stored list."""
_MOST_BYTES = 4 << 20
_NAME = re.compile(r"([A-Z][A-Z0-9_]+) *")
_RANGE = re.compile(r"range: (\d{1,3})-(\d{1,3})\b")
_ITEM = re.compile(r">|<|-{5}|Arguments|Syntax|I_MPI_\w+=|range:")
_WORD = re.compile(r"^> ([a-z0-9_| ]+?) -(?: |$)", re.MULTILINE)
_TYPES = {"MPI_INT": "int", "MPI_UNSIGNED": "int", "MPI_LONG_LONG": "int", "MPI_DOUBLE": "double"}
_USUAL, _EXPERT = 4, 9
"""Levels of the variables that are always listed, and of those listed only with ``-e``."""


def read_parameters(command: Path, environment: Mapping[str, str]) -> dict[str, ParamInfo]:
    """The variables by name; {} if the command is missing or prints nothing.

    The list is stored in the cache until the command changes.
    """
    place = files.cache_about(command, "impi-info", _FORMAT)
    if place is None or not os.access(command, os.X_OK):
        return {}
    texts = _read_cache(place)
    if texts is None:
        commands = ([str(command), "-a"], [str(command), "-a", "-e"])
        texts = [output_of(words, environment, timeout_s=TIMEOUT_S) for words in commands]
        if all(texts):
            with suppress(OSError):
                write_private(place, json.dumps(texts))
    usual, everything = texts
    return parse(everything, set(parse(usual)))


def parse(text: str, usual: set[str] | None = None) -> dict[str, ParamInfo]:
    """The variables in the output of ``impi_info -a``; ``usual`` are the names of the ordinary
    ones."""
    params: dict[str, ParamInfo] = {}
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            match = _NAME.fullmatch(line)
            blocks.append((match[1] if match else "", []))
        elif blocks:
            blocks[-1][1].append(line)
    for name, lines in blocks:
        if name:
            special = usual is not None and name not in usual
            params[name] = _parameter(name, lines, _EXPERT if special else _USUAL)
    return params


def _parameter(name: str, lines: list[str], level: int) -> ParamInfo:
    parts: dict[str, list[str]] = {}
    part = ""
    for line in lines:
        heading = line.strip()
        if heading in ("MPI Datatype:", "Description:", "Default:"):
            part = heading
        else:
            parts.setdefault(part, []).append(line)
    kind = " ".join(parts.get("MPI Datatype:", [])).strip()
    text = _join_lines(parts.get("Description:", []))
    limits = _RANGE.search(text)
    numbers = range(int(limits[1]), int(limits[2]) + 1) if limits else ()
    default = " ".join(parts.get("Default:", [])).strip()
    return ParamInfo(
        name=name,
        type="int" if numbers else _TYPES.get(kind, "string"),
        default="" if default == "not defined" else default,
        level=level,
        help=text,
        enum={number: str(number) for number in numbers},
    )


def _join_lines(lines: list[str]) -> str:
    """The description with each sentence and each item of a list on one line.

    ``impi_info`` breaks long lines; after a break within a word the text starts a column earlier.
    """
    text = ""
    for line in lines:
        cut = line.startswith("   ") and not line.startswith("    ")
        word = line.lstrip()
        if cut:
            text += line[3:]
        elif _ITEM.match(word) or text.endswith("-") or not text:
            text += f"\n{word}"
        else:
            text += f" {word}"
    return "\n".join(" ".join(line.split()) for line in text.splitlines()).strip()


def words_of(info: ParamInfo) -> frozenset[str]:
    """The words that a variable takes, if its description lists them as ``> word | other - ...``.

    Empty for other variables, also if a word has parts (``cache1/2/3``).
    """
    words = (word.strip() for group in _WORD.findall(info.help) for word in group.split("|"))
    return frozenset(words) if info.type == "string" else frozenset()


def _read_cache(place: Path) -> list[str] | None:
    """The two texts in the cache, checked; None if there are none."""
    try:
        texts = parse_json(read_private(place, _MOST_BYTES))
    except (OSError, ValueError):
        return None
    if not (isinstance(texts, list) and len(texts) == 2):
        return None
    return texts if all(isinstance(text, str) and text for text in texts) else None
