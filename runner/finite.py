"""Figures for JSON, which has neither NaN nor infinities."""

from __future__ import annotations

import math
from typing import Any


def finite(value: float) -> float | None:
    """The number; None where it is NaN or infinite."""
    return value if math.isfinite(value) else None


def all_finite(value: Any) -> Any:
    """JSON data, every float in it as :func:`finite`; tuples become lists."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: all_finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [all_finite(inner) for inner in value]
    return value
