"""When two texts mean one value of an MCA parameter: 64k = 65536, true = 1, enum name = number."""

from __future__ import annotations

import re

from runner.mpi.library import ParamInfo

_NUMBER = re.compile(r"^(-?(?:0[xX][0-9a-fA-F]+|\d+))([kKmMgGtT]?)[bB]?$")
_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TRUE = {"1", "true", "t", "enabled", "yes", "y"}
_FALSE = {"0", "false", "f", "disabled", "no", "n"}


def normalise(text: str, info: ParamInfo | None) -> str:
    """The canonical text of a value: numbers in decimal, booleans 0/1, enumerated names as numbers.

    ``info`` is the library's description, or None where there is none; then only what is certain
    without it is rewritten.
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
    """Whether both texts mean one value of the parameter ``info`` describes."""
    a, b = normalise(first, info), normalise(second, info)
    if a == b:
        return True
    if info is not None and info.type == "double":
        try:
            return float(a) == float(b)
        except ValueError:
            return False
    return info is None and {a.lower(), b.lower()} in ({"1", "true"}, {"0", "false"})
