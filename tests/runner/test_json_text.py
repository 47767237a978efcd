"""JSON from outside is of bounded depth, and finite where that is asked for."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.files.json_text import DEPTH, parse_json
from runner.supervise.output import Capture


def nested(levels: int, begin: str = "[", end: str = "]") -> str:
    return begin * levels + "1" + end * levels


@pytest.mark.parametrize("levels", [0, 1, DEPTH])
def test_a_document_of_the_bound_is_read(levels: int) -> None:
    assert parse_json(nested(levels)) == json.loads(nested(levels))


@pytest.mark.parametrize("levels", [DEPTH + 1, 900, 980, 985, 1000, 100_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_a_deeper_one_is_refused(levels: int, begin: str, end: str) -> None:
    with pytest.raises(ValueError, match=str(DEPTH)):
        parse_json(nested(levels, begin, end))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_not_finite(word: str) -> None:
    text = f'{{"a": [1, {word}]}}'
    assert not math.isfinite(parse_json(text)["a"][1])
    with pytest.raises(ValueError):
        parse_json(text, finite=True)


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_other_documents_come_back(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize("levels", [DEPTH, 900, 980, 983, 985])
def test_a_line_that_is_too_deep_is_no_result_of_a_program(levels: int) -> None:
    capture = Capture({}, 1000, 1000)
    capture.add_stdout(b'{"a": 1}\n{"b": ' + nested(levels).encode() + b"}\n")
    capture.close()
    assert capture.json_line == {"a": 1}
