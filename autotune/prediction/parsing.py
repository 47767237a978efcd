"""Checked access to the parts of a model file.

Raises ValueError with the invalid key; the caller adds the file name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from autotune.errors import UsageError
from autotune.prediction.measured_cell import Floats
from autotune.space import Setting
from autotune.space.outside_names import check_values


def required_entry(data: Mapping[str, Any], key: str) -> Any:
    if not isinstance(data, Mapping) or key not in data:
        raise ValueError(f"{key} is missing")
    return data[key]


def mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = required_entry(data, key)
    if not isinstance(value, dict):
        raise ValueError(f"{key}: expected a JSON object")
    return value


def sequence(data: Mapping[str, Any], key: str) -> list[Any]:
    value = required_entry(data, key)
    if not isinstance(value, list):
        raise ValueError(f"{key}: expected a list")
    return value


def text(data: Mapping[str, Any], key: str) -> str:
    value = required_entry(data, key)
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected a text")
    return value


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The list of texts of ``key``; raises ValueError for anything else."""
    value = sequence(data, key)
    if not all(isinstance(word, str) for word in value):
        raise ValueError(f"{key}: expected a list of texts")
    return tuple(value)


def number(data: Mapping[str, Any], key: str, low: float, high: float) -> float:
    value = required_entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{key}: expected a number from {low:g} to {high:g}")
    return float(value)


def integer(data: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """The whole number of ``key``, from ``low`` to ``high``; else raises ValueError."""
    value = number(data, key, low, high)
    if value != int(value):
        raise ValueError(f"{key}: expected a whole number")
    return int(value)


def floats(data: Mapping[str, Any], key: str, shape: tuple[int | None, ...]) -> Floats:
    """An array of finite numbers; None in ``shape`` means any length."""
    try:
        array = np.array(sequence(data, key), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: expected a table of numbers") from None
    if array.size == 0 and 0 not in shape and len(shape) == 2:
        array = array.reshape(0, shape[1] or 0)
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"{key}: expected finite numbers in the shape {shape}")
    return array


def names(data: Mapping[str, Any], key: str, vocabulary: Container[str]) -> tuple[str, ...]:
    """The feature names of ``key``, at least one, each known and once; else raises ValueError."""
    words = texts(data, key)
    unknown = [word for word in words if word not in vocabulary]
    if unknown or not words or len(set(words)) != len(words):
        raise ValueError(f"{key}: expected names of known features, each once; not {unknown[:3]}")
    return words


def settings(data: Mapping[str, Any], key: str) -> tuple[Setting, ...]:
    """The settings of ``key``; raises ValueError for anything else."""
    entries = []
    for item in sequence(data, key):
        if not isinstance(item, dict):
            raise ValueError(f"{key}: expected a list of settings")
        try:
            setting = Setting(item)
            check_values(setting, key)
            entries.append(setting)
        except UsageError as problem:
            raise ValueError(f"{key}: {problem}") from None
    return tuple(entries)
