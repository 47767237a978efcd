"""How a program ended, and whether its result is right, whatever it sends or prints."""

from __future__ import annotations

import json
import math
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.outcome import YES, says_yes, signal_name
from runner.types import all_finite

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def test_every_signal_has_a_name() -> None:
    known = {one.value: one.name for one in signal.Signals}
    for number in range(1, 65):
        name = signal_name(number)
        assert name == known.get(number, name)
        assert name.startswith("SIG") or name == str(number)


@pytest.mark.parametrize("value", [True, 1, -1, 0.5, 10**400, *sorted(YES), "YES", " Passed\n"])
def test_what_says_yes(value: object) -> None:
    assert says_yes(value)


@pytest.mark.parametrize(
    "value",
    [
        *(None, False, 0, 0.0, math.nan, math.inf, -math.inf, "", "false", "No", "0", "nan"),
        *("failed", "unverified", "not ok", [], [True], {}, {"ok": True}),
    ],
)
def test_what_says_no(value: object) -> None:
    assert not says_yes(value)


@given(VALUES)
def test_any_value_is_a_yes_or_a_no(value: Any) -> None:
    said = says_yes(value)
    assert said is True or said is False
    if isinstance(value, float) and not math.isfinite(value):
        assert not said


@given(VALUES)
def test_what_a_program_printed_can_be_written_as_json(value: Any) -> None:
    json.dumps(all_finite(value), allow_nan=False)
