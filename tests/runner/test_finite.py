"""Figures for JSON."""

from __future__ import annotations

import json
import math

from autotune.stats import known_gain
from runner.types import all_finite, finite


def test_what_is_no_number_becomes_none() -> None:
    assert [finite(x) for x in (1.5, -1.0, math.inf, -math.inf, math.nan)] == [
        1.5, -1.0, None, None, None,
    ]  # fmt: skip


def test_at_any_depth() -> None:
    data = {"a": [1.0, math.inf, {"b": (math.nan, "x", True, 3)}]}
    assert all_finite(data) == {"a": [1.0, None, {"b": [None, "x", True, 3]}]}
    assert json.loads(json.dumps(all_finite(data), allow_nan=False)) == all_finite(data)


def test_an_open_interval_has_no_end() -> None:
    assert [known_gain(x) for x in (-0.5, -1.0, math.inf, math.nan)] == [-0.5, None, None, None]
