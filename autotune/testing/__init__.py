"""Test suites (contracts) that every implementation of an extension point must pass.

They need pytest and hypothesis: pip install "mpi-autotune[testing]". Each suite is a class: create
a subclass whose name starts with ``Test`` in your own test module, with the fixtures and attributes
that its docstring names (docs/howto/extending.md).
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.testing.format import FormatContract
    from autotune.testing.mpi_library import MpiLibraryContract, ParameterFile
    from autotune.testing.obeyed import ObeyedContract
    from autotune.testing.scheduler import SchedulerContract
    from autotune.testing.strategy import StrategyContract
    from autotune.testing.strategy_quality import StrategyQuality

_MODULES = {
    "FormatContract": "autotune.testing.format",
    "MpiLibraryContract": "autotune.testing.mpi_library",
    "ObeyedContract": "autotune.testing.obeyed",
    "ParameterFile": "autotune.testing.mpi_library",
    "SchedulerContract": "autotune.testing.scheduler",
    "StrategyContract": "autotune.testing.strategy",
    "StrategyQuality": "autotune.testing.strategy_quality",
}

__all__ = [
    "FormatContract",
    "MpiLibraryContract",
    "ObeyedContract",
    "ParameterFile",
    "SchedulerContract",
    "StrategyContract",
    "StrategyQuality",
]


def __getattr__(name: str) -> Any:
    """Import a suite on first use, because pytest is not a dependency of autotune."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    pytest.register_assert_rewrite(*(set(_MODULES.values()) - set(sys.modules)))
    return getattr(importlib.import_module(_MODULES[name]), name)
