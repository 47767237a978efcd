"""An MPI library and its parameters, as discovery describes them.

Also compares two texts of an MCA parameter's value (64k = 65536, true = 1, enum name = number), and
knows each Open MPI generation's names of the placement policies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.files.paths import real_path


@dataclass(frozen=True)
class ParamInfo:
    """One run-time parameter as the running library describes it.

    ``default`` is the value that the library starts with, as text. ``enum`` maps numbers to names
    if the library enumerates the values; with ``by_name`` it takes the names only, and its default
    is a name. ``synonym_of`` is the current name of a deprecated parameter.
    """

    name: str
    type: str
    default: str
    framework: str = ""
    component: str = ""
    level: int = 9
    help: str = ""
    enum: dict[int, str] = field(default_factory=dict)
    source: str = "default"
    synonym_of: str | None = None
    deprecated: bool = False
    by_name: bool = False

    @property
    def number_names(self) -> dict[int, str]:
        """The enumerated values that a setting gives as numbers, with their names."""
        return {} if self.by_name else self.enum

    @property
    def only_words(self) -> tuple[str, ...]:
        """The only words that the library accepts; empty if it accepts others or numbers."""
        return tuple(self.enum.values()) if self.by_name else ()


def enumerated_values(enum: Mapping[int, str]) -> str:
    """The values of an enumeration for people: ``1 linear, 2 chain``; ``0 to 22`` without names."""
    if len(enum) > 2 and all(str(number) == name for number, name in enum.items()):
        return f"{min(enum)} to {max(enum)}"
    return ", ".join(f"{number} {name}" for number, name in sorted(enum.items()))


@dataclass(frozen=True)
class Library:
    """One MPI installation.

    ``family`` is a key of :func:`runner.mpi.discover.families`, ``version`` the text that the
    library prints, ``bin`` the directory of its commands. Discovery fills ``params``; they are
    empty if the library does not report any.
    """

    family: str
    version: str
    bin: str
    launcher: str
    params: dict[str, ParamInfo] = field(default_factory=dict)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that may hold the installation's shared libraries."""
        prefix = real_path(self.bin).parent
        return (prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu*")))

    @property
    def version_tuple(self) -> tuple[int, ...]:
        """(5, 0, 11) for "5.0.11"; text after the digits ("rc1") is left out."""
        parts = []
        for word in self.version.split("."):
            digits = ""
            for char in word:
                if not char.isdigit():
                    break
                digits += char
            if not digits:
                break
            parts.append(int(digits))
        return tuple(parts)


_NUMBER = re.compile(r"^(-?(?:0[xX][0-9a-fA-F]+|\d+))([kKmMgGtT]?)[bB]?$")
_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TRUE = {"1", "true", "t", "enabled", "yes", "y"}
_FALSE = {"0", "false", "f", "disabled", "no", "n"}


def normalise(text: str, info: ParamInfo | None) -> str:
    """The canonical text of a value: numbers in decimal, booleans 0/1, enumerated names as numbers.

    ``info`` is the library's description, or None. Without it, only forms that mean the same for
    every parameter are rewritten.
    """
    word = text.strip()
    if info is not None:
        for number, name in info.enum.items():
            if word.lower() == name.lower():
                return str(number)
        if info.type == "bool":
            if word.lower() in _TRUE:
                return "1"
            if word.lower() in _FALSE:
                return "0"
        if info.type == "string":
            return word
    match = _NUMBER.match(word)
    if match:
        return str(int(match[1], 0 if "x" in match[1].lower() else 10) * _FACTOR[match[2].lower()])
    return word


def same_value(first: str, second: str, info: ParamInfo | None) -> bool:
    """True if both texts mean the same value of the parameter that ``info`` describes."""
    a, b = normalise(first, info), normalise(second, info)
    if a == b:
        return True
    if info is not None and info.type == "double":
        try:
            return float(a) == float(b)
        except ValueError:
            return False
    return info is None and {a.lower(), b.lower()} in ({"1", "true"}, {"0", "false"})


POLICIES = {
    "map_by": ("rmaps_base_mapping_policy", "rmaps_default_mapping_policy"),
    "bind_to": ("hwloc_base_binding_policy", "hwloc_default_binding_policy"),
    "rank_by": ("rmaps_base_ranking_policy", "rmaps_default_ranking_policy"),
}
"""Parameters that set the placement: of Open MPI 4.1, and of PRRTE with 5.x."""

_PLACEMENT = {name: knob for knob, names in POLICIES.items() for name in names}


def placement_of(name: str) -> str | None:
    """``bind_to`` for ``hwloc_base_binding_policy``, and so on; None for all other parameters."""
    return _PLACEMENT.get(name)
