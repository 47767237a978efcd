"""Names of parameters of known versions, shipped as data in ``names/FAMILY-SERIES.txt``.

They tell a name of another version from one that no version has, and stand in for the list of a
library that is not installed. Each file says in its first lines from which installations it was
made (``python -m benchmarks.parameter_names``). A line has the common beginning of several
names and their ends; ``=`` is the empty end. A line in brackets names the layer of those below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

FOLDER = "names"
_FILE = re.compile(r"([a-z]+)-([0-9.]+)\.txt")
_EMPTY = "="
_WIDTH = 100


@dataclass(frozen=True)
class ShippedNames:
    """The names of one series of versions, such as Open MPI 4.1, by layer."""

    family: str
    series: str
    names: Mapping[str, frozenset[str]]

    @property
    def all(self) -> frozenset[str]:
        """The names of all layers."""
        return frozenset().union(*self.names.values())

    def is_of(self, family: str, version: tuple[int, ...]) -> bool:
        """True if a version belongs to this series."""
        series = tuple(map(int, self.series.split(".")))
        return family == self.family and version[: len(series)] == series


@cache
def shipped_names() -> tuple[ShippedNames, ...]:
    """The names of every series, in the order of the files."""
    folder = resources.files("autotune.parameters").joinpath(FOLDER)
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    return tuple(
        ShippedNames(match[1], match[2], parse_names(file.read_text(encoding="utf-8")))
        for file in files
        if (match := _FILE.fullmatch(file.name))
    )


def shipped_of(family: str, version: tuple[int, ...]) -> ShippedNames | None:
    """The names of the series to which a version belongs; None if none is shipped.

    A version without a series of its own gets the newest one of its major version.
    """
    mine = [one for one in shipped_names() if one.is_of(family, version)]
    same_major = [one for one in shipped_names() if one.is_of(family, version[:1])]
    major = [one for one in shipped_names() if one.family == family and version[:1]
             and one.series.split(".")[0] == str(version[0])]  # fmt: skip
    return next(iter((*mine, *same_major, *reversed(major))), None)


def parse_names(text: str) -> dict[str, frozenset[str]]:
    """The names in the text of a file, by layer."""
    names: dict[str, set[str]] = {}
    own: set[str] = set()
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].startswith("["):
            own = names.setdefault(words[0].strip("[]"), set())
        else:
            own |= {words[0] + ("" if end == _EMPTY else end) for end in words[1:]}
    return {layer: frozenset(several) for layer, several in names.items()}


def names_text(layers: Mapping[str, Iterable[str]], source: str) -> str:
    """The text of a file; ``source`` says where the names come from."""
    lines = [f"# {source}"]
    for layer, names in layers.items():
        lines += ["", f"[{layer}]", *_grouped(sorted(set(names)))]
    return "\n".join(lines) + "\n"


def _grouped(names: list[str]) -> Iterator[str]:
    """The names with a common beginning on one line, at most 100 columns wide."""
    groups: dict[str, list[str]] = {}
    for name in names:
        parts = name.split("_")
        depth = 3 if name.isupper() or name.startswith(("MPIR_", "I_MPI", "UCX_", "FI_")) else 2
        begin = "_".join(parts[:depth]) + "_" if len(parts) > depth else name
        groups.setdefault(begin, []).append(name.removeprefix(begin) or _EMPTY)
    for begin, ends in groups.items():
        line = begin
        for end in ends:
            if len(line) + len(end) >= _WIDTH:
                yield line
                line = begin
            line += f" {end}"
        yield line
