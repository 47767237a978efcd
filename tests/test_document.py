"""Schemas that are derived from models: what they demand, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import jsonschema
import numpy as np
import pytest

from autotune.document import Document, Omitted, from_json, schema_of, to_json
from autotune.json_types import Ends, Number
from tests.case_table import case_table


@dataclass
class Inner:
    value: Number
    rest: int = 0


class Outer(Document):
    inner: Inner
    """What is inside."""
    ends: Ends | None
    more: Omitted[int] = None


@dataclass
class Whole:
    inner: Inner
    words: str = ""


@dataclass
class Counts:
    runs: int
    rows: list[Any]


def test_a_document_is_written_as_it_is() -> None:
    outer = Outer(inner=Inner(1), ends=(None, 2.5))
    assert json.dumps(outer.to_json()) == (
        '{"inner": {"value": 1, "rest": 0}, "ends": [null, 2.5]}'
    )


GOOD = {"inner": {"value": 1, "rest": 0}, "ends": [None, 2.5], "more": 3}


@case_table(
    ("place", "value"),
    [
        (("inner", "rest"), None),  # A key that has a default is written, too.
        (("inner", "other"), 1),
        (("inner", "value"), "1"),
        (("ends",), [1.0]),
        (("more",), None),
    ],
)
def test_a_schema_is_not_loose(place: tuple[str, ...], value: Any) -> None:
    schema = jsonschema.Draft202012Validator(schema_of(Outer, "a test"))
    assert schema.is_valid(GOOD)
    assert schema.is_valid({name: part for name, part in GOOD.items() if name != "more"})
    bad = json.loads(json.dumps(GOOD))
    part = bad
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    assert not schema.is_valid(bad)
    if place == ("inner", "rest"):
        del part["rest"]
        assert not schema.is_valid(bad)


def test_texts_below_fields_describe_keys() -> None:
    assert schema_of(Outer, "a test")["properties"]["inner"]["description"] == "What is inside."


def test_a_dataclass_can_be_a_document() -> None:
    whole = Whole(Inner(1.5))
    assert from_json(Whole, to_json(whole)) == whole
    assert "words" not in to_json(whole, "words")
    with pytest.raises(ValueError, match=r"^inner\.value"):
        from_json(Whole, {"inner": {"value": "much"}})


def test_a_number_of_numpy_is_written_as_one() -> None:
    document = to_json(Counts(np.int64(3), [np.int64(4), 5]))
    assert json.dumps(document) == '{"runs": 3, "rows": [4, 5]}'
    with pytest.raises(TypeError):
        to_json(Counts(1, [object()]))
