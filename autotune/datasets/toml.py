"""Plain data as TOML: what cards and frozen spaces are written with (the library only reads)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(data: Mapping[str, Any]) -> str:
    """The text of a table; None values are left out.

    Nested mappings become tables, non-empty lists of mappings arrays of tables.  Raises TypeError
    for anything that TOML does not have.
    """
    return "\n".join(_table(data, ())).lstrip("\n") + "\n"


def _table(data: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines = []
    plain = {k: v for k, v in data.items() if v is not None and not _is_nested(v)}
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in data.items():
        inside = (*place, key)
        name = ".".join(map(_key, inside))
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", *_table(value, inside)]
        elif _is_nested(value):
            for item in value:
                lines += ["", f"[[{name}]]", *_table(item, inside)]
    return lines


def _is_nested(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's too, but for the one character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} cannot be written as TOML")
