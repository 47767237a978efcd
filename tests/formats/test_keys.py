"""The comparison of documents and of schemas sees what it is for."""

from __future__ import annotations

import copy
import json
from typing import Any

from autotune.schemas import load_schema
from tests.formats.keys import broken_promises, lost_keys


def test_a_key_that_is_missing_anywhere_is_named() -> None:
    old = {"a": 1, "rows": [{"x": 1}, {"x": 2, "y": {"z": 1}}], "none": None}
    assert list(lost_keys(old, old | {"more": 2})) == []
    assert list(lost_keys(old, old | {"rows": [{"y": {"z": 3}, "x": 1}]})) == []
    assert list(lost_keys(old, {"a": 1, "rows": [{"x": 1, "y": {}}]})) == ["$.rows[].y.z", "$.none"]
    assert list(lost_keys([old], [{"a": 1}])) == ["$[].rows", "$[].none"]


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every part of a schema that has keys."""
    if isinstance(schema, dict):
        inner = [one for value in schema.values() for one in objects(value)]
        return [*([schema] if isinstance(schema.get("properties"), dict) else []), *inner]
    if isinstance(schema, list):
        return [one for value in schema for one in objects(value)]
    return []


def test_renamed_keys_of_each_part_are_seen() -> None:
    known: set[str] = set()
    for name in ("predict", "studies", "noise", "status", "verify-published"):
        schema = load_schema(name)
        assert broken_promises(schema, schema) == []
        changed = copy.deepcopy(schema)
        for part in objects(changed):
            keys = part["properties"]
            if (text := json.dumps(part, sort_keys=True)) in known:
                continue
            known.add(text)
            part["properties"] = {f"{key}_2": value for key, value in keys.items()}
            assert broken_promises(schema, changed), (name, keys)
            part["properties"] = keys
    assert len(known) > 20


def places(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Where a promise is broken."""
    return [promise.split()[0] for promise in broken_promises(old, new)]


def test_a_key_that_may_be_left_out_or_has_another_type_is_seen() -> None:
    old = {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"anyOf": [{"type": "null"}, {"$ref": "#/x"}]},
        },
        "required": ["a"],
        "x": {"type": "object", "properties": {"c": {"enum": ["u"], "type": "string"}}},
    }
    new = copy.deepcopy(old)
    new["properties"]["d"] = {"type": "string"}
    new["x"]["properties"]["c"]["enum"].append("v")
    assert broken_promises(old, new) == []
    assert places(old, new | {"required": []}) == ["$.a"]
    new["properties"]["a"] = {"type": ["number", "string"]}
    assert places(old, new) == ["$.a"]
    new["properties"]["a"] = {"type": "number"}
    del new["x"]["properties"]["c"]
    assert places(old, new) == ["$.b.c"]
