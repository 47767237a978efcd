"""Settings: values for some parameters; a parameter without a value keeps the library's default."""

from __future__ import annotations

import math
import re
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import lru_cache
from typing import Annotated, Any, Self

from autotune.errors import UsageError
from autotune.json_types import ValuesByName

Value = int | float | str
"""The value of a parameter; booleans are the integers 0 and 1."""

DEFAULT_KEY = "default"

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIZE = re.compile(r"([+-]?[0-9]{1,1000})([kKmMgG])")
_SHIFT = {"k": 10, "m": 20, "g": 30}
_WORDS = {"true": 1, "false": 0}
_PLAIN = re.compile(r"[^\s,=\"\\]+")
_PAIR = re.compile(r"\s*([^=,]*?)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|(?:[^,=\"][^,\"]*?)?)\s*(?:,|$)")
_LARGEST_EXACT = 2**53


def read_value(text: str) -> Value:
    """A value from text: ``64k`` = 65536 (K = 1024), ``true`` = 1, a number, or the text."""
    lower_text = text.lower()
    if lower_text in _WORDS:
        return _WORDS[lower_text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if size := _SIZE.fullmatch(text):
        return int(size[1]) << _SHIFT[size[2].lower()]
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return normalise_value(number)
    return text


def normalise_value(value: object) -> Value:
    """One form per value: ``True`` is 1, a whole float is an integer, so that 1 == 1.0 == True.

    Raises :class:`UsageError` for anything but a finite number or text.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        if value.is_integer() and abs(value) < _LARGEST_EXACT:
            return int(value)
        return value
    raise UsageError(
        f"{value!r} cannot be the value of a parameter: expected a number or text",
        code="parameter.value",
    )


def write_value(value: Value) -> str:
    """Text that :func:`read_value` reads back, or :meth:`Setting.parse` if it is quoted."""
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value) and read_value(value) == value:
        return value
    quotable = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quotable}"'


@lru_cache(maxsize=10_000, typed=True)
def _pair(name: str, value: Value) -> str:
    """One value of a setting's key. A search creates thousands of settings with the same values."""
    return f"{name}={write_value(value)}"


class Setting(Mapping[str, Value]):
    """A setting, immutable and hashable; two with the same values are equal in any order.

    Raises :class:`UsageError` for an impossible parameter name, or a value that is neither a finite
    number nor text.
    """

    __slots__ = ("_hash", "_items", "_key")

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        values = values or {}
        for name in values:
            if not NAME.fullmatch(name):
                raise UsageError(
                    f"{name!r} is not a parameter name (letters, digits, _ . -)",
                    code="parameter.name",
                )
        self._set({name: normalise_value(values[name]) for name in sorted(values)})

    def _set(self, items: dict[str, Value]) -> None:
        self._items = items
        self._key = ",".join([_pair(name, value) for name, value in items.items()]) or DEFAULT_KEY
        self._hash = hash(self._key)

    @classmethod
    def from_sorted_items(cls, items: dict[str, Value]) -> Self:
        """The setting of sorted names with normalised values, unchecked.

        The dictionary becomes part of the setting.
        """
        setting = cls.__new__(cls)
        setting._set(items)
        return setting

    @classmethod
    def parse(cls, text: str) -> Setting:
        """Read ``default`` or ``name=value,name=value``.

        A value with a comma is written in double quotes. Raises :class:`UsageError` with the place
        of the mistake.
        """
        text = text.strip()
        if text == DEFAULT_KEY:
            return cls()
        values: dict[str, Value] = {}
        place = 0
        while place < len(text) or not values:
            pair = _PAIR.match(text, place)
            if pair is None or not NAME.fullmatch(pair[1]) or not pair[2]:
                raise _misread(text, place)
            if pair[1] in values:
                raise UsageError(
                    f"setting {text!r}: {pair[1]} is given twice; keep one of them",
                    code="setting.conflict",
                )
            values[pair[1]] = _unquote(pair[2])
            place = pair.end()
        if text.endswith(","):
            raise _misread(text, len(text))
        return cls(values)

    @property
    def key(self) -> str:
        """Canonical text, sorted by name: ``default`` or ``a=1,b=x``."""
        return self._key

    def without(self, *names: str) -> Setting:
        """The same setting with these parameters unset."""
        return Setting.from_sorted_items({n: v for n, v in self._items.items() if n not in names})

    def restrict_to(self, values: dict[str, Value]) -> Setting:
        """The setting with these values, which are for some of its names in the same order."""
        return self if values == self._items else Setting.from_sorted_items(values)

    def with_values(self, values: Mapping[str, Value]) -> Setting:
        """The same setting with these values added or replaced."""
        return Setting({**self._items, **values})

    def to_json(self) -> dict[str, Value]:
        """A plain dictionary; :class:`Setting` of it gives the setting back."""
        return dict(self._items)

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    # Mapping's own methods do the same through those above, many times slower.

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def keys(self) -> KeysView[str]:
        return self._items.keys()

    def values(self) -> ValuesView[Value]:
        return self._items.values()

    def items(self) -> ItemsView[str, Value]:
        return self._items.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and self._key == other._key

    def __str__(self) -> str:
        return self._key

    def __repr__(self) -> str:
        return f"Setting({self._key})"


def _unquote(text: str) -> Value:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return read_value(text)


def _misread(text: str, place: int) -> UsageError:
    return UsageError(
        f"setting {text!r}, column {place + 1}: cannot read {text[place:] or 'the empty text'!r}; "
        'expected "default" or name=value,name=value '
        "(a value that contains a comma in double quotes)",
        code="setting.syntax",
    )


DEFAULT = Setting()


def _setting(value: Any) -> Setting:
    return value if isinstance(value, Setting) else Setting(value)


class _AsValues:
    """Reads and writes a setting in a document, where it is an object of its values."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import PlainSerializer, PlainValidator

        reader = PlainValidator(_setting)
        writer = PlainSerializer(Setting.to_json, return_type=ValuesByName)
        return handler.generate_schema(Annotated[Setting, reader, writer])


SettingValues = Annotated[Setting, _AsValues()]
"""A setting in a document."""
