"""What a document or a schema of a former version has, and one of today lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def lost_keys(old: Any, new: Any, place: str = "$") -> Iterator[str]:
    """Keys of ``old`` that are not at the same place of ``new``, as paths.

    The elements of a list count together, so that the order and number of rows say nothing.
    """
    match old, new:
        case dict(), dict():
            for key, value in old.items():
                if key in new:
                    yield from lost_keys(value, new[key], f"{place}.{key}")
                else:
                    yield f"{place}.{key}"
        case list(), list() if new:
            yield from lost_keys(_joined(old), _joined(new), f"{place}[]")


def _joined(rows: Sequence[Any]) -> Any:
    """One value with the keys of all; the first one if they are not all dictionaries."""
    if not all(isinstance(row, dict) for row in rows):
        return next((row for row in rows if isinstance(row, dict | list) and row), None)
    joined: dict[str, Any] = {}
    for row in rows:
        joined |= {key: value for key, value in row.items() if value or key not in joined}
    return joined


def broken_promises(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Where a JSON Schema allows less than was promised to readers of the documents.

    A key of the former schema is gone, or may be left out though it was always there, or has a
    type that it did not have.  Keys, and values of an enumeration, may be added.
    """
    return list(_Comparison(old, new).lost(old, new, "$"))


class _Comparison:
    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self.old_root = old
        self.new_root = new
        self.pairs: set[tuple[str, str]] = set()

    def lost(self, old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> Iterator[str]:
        references = (old.get("$ref", ""), new.get("$ref", ""))
        if any(references):
            if references in self.pairs:
                return
            self.pairs.add(references)
        old, new = _resolved(old, self.old_root), _resolved(new, self.new_root)
        yield from self._lost_forms(old, new, place)
        parts = new.get("properties", {})
        for key, part in old.get("properties", {}).items():
            if key not in parts:
                yield f"{place}.{key} is gone"
                continue
            if key in old.get("required", ()) and key not in new.get("required", ()):
                yield f"{place}.{key} may be left out"
            yield from self.lost(part, parts[key], f"{place}.{key}")
        pairs = zip(old.get("prefixItems", ()), new.get("prefixItems", ()), strict=False)
        for number, (part, other) in enumerate(pairs):
            yield from self.lost(part, other, f"{place}[{number}]")
        for name, step in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(old.get(name), dict):
                if isinstance(new.get(name), dict):
                    yield from self.lost(old[name], new[name], f"{place}{step}")
                else:
                    yield f"{place}{step} is not described"

    def _lost_forms(
        self, old: Mapping[str, Any], new: Mapping[str, Any], place: str
    ) -> Iterator[str]:
        """A form of a value is gone, or there is a new one, which no reader expects."""
        forms = list(_forms(old, self.old_root))
        fresh = list(_forms(new, self.new_root))
        if "anyOf" in old or "anyOf" in new:
            for form in forms:
                same = [one for one in fresh if set(_types(one)) & set(_types(form))]
                losses = [list(self._copy().lost(form, one, place)) for one in same]
                if losses and all(losses):
                    yield from min(losses, key=len)
        types = {kind for form in forms for kind in _types(form)}
        more = {kind for form in fresh for kind in _types(form)} - types
        if types and more:
            yield f"{place} may be {', '.join(sorted(more))}"
        if "const" in old and old["const"] != new.get("const"):
            yield f"{place} is {new.get('const')!r}, not {old['const']!r}"

    def _copy(self) -> _Comparison:
        other = _Comparison(self.old_root, self.new_root)
        other.pairs = set(self.pairs)
        return other


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with what it refers to; keys of both hold."""
    while reference := schema.get("$ref"):
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        own = {key: value for key, value in schema.items() if key != "$ref"}
        keys = {**target.get("properties", {}), **own.get("properties", {})}
        schema = {**target, **own, **({"properties": keys} if keys else {})}
    return schema


def _forms(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for form in schema.get("anyOf", [schema]):
        yield _resolved(form, root)


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
