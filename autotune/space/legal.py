"""Whether the library accepts a value; it would not say so itself.

Open MPI reads a word where it wants a number as 0, and an unknown enumerated value as its default.
"""

from __future__ import annotations

from autotune.space.setting import Value
from runner.mpi.library import ParamInfo


def is_flags(info: ParamInfo) -> bool:
    """Whether the enumerated values are bits that are added up."""
    return bool(info.enum) and (info.name.endswith("_flags") or "," in info.default)


def illegal(value: Value, info: ParamInfo) -> str | None:
    """Why ``value`` is not legal for the parameter, or None."""
    if isinstance(value, str):
        return _illegal_word(value, info)
    if info.type == "string":
        return None
    if info.type == "bool":
        return None if value in (0, 1) else f"{value} is not a boolean"
    if info.enum and not is_flags(info):
        return None if value in info.enum else f"{value} is not among {_values(info)}"
    if isinstance(value, float) and info.type != "double":
        return f"{value} is not a whole number"
    if value < 0 and info.type in ("unsigned", "size_t"):
        return f"{value} is negative"
    return None


def _illegal_word(word: str, info: ParamInfo) -> str | None:
    if info.type == "string" or word in info.enum.values():
        return None
    if info.enum:
        return f"{word!r} is not among {_values(info)}"
    return f"{word!r} is not a number; the library would read it as 0"


def _values(info: ParamInfo) -> str:
    return ", ".join(f"{number} {name}" for number, name in sorted(info.enum.items()))
