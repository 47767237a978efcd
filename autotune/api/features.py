"""Features of a traced run, read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from autotune.errors import UsageError

if TYPE_CHECKING:
    from runner.trace import Features


def read_features(path: Path) -> Features:
    """A features file; what is wrong with it is wrong input (UsageError)."""
    from runner.trace import FeaturesError, load_features

    try:
        return load_features(path)
    except FeaturesError as problem:
        raise UsageError(str(problem)) from None
