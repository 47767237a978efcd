"""Packages that single strategies need and that are not installed with autotune."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from autotune.errors import UsageError


def missing(packages: Sequence[str]) -> list[str]:
    """Those that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def need(strategy: str, packages: Sequence[str]) -> None:
    """Raise :class:`UsageError` where a package is not installed."""
    absent = missing(packages)
    if absent:
        raise UsageError(
            f"strategy {strategy} needs {' and '.join(absent)}, which is not installed: "
            f"pip install {' '.join(absent)}, or choose another strategy (auto needs "
            "nothing more)"
        )
