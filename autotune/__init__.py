"""Find out how an MPI program should be started on a machine, and prove it.

The public names are :func:`tune`, :func:`compare`, :func:`noise` and :func:`predict`, which equal
the commands of these names, :func:`compare_libraries` (the command ``compare`` with two libraries)
and :class:`Study`, which reads a stored study. The errors are those of the command line:
:class:`UsageError` for wrong input, :class:`WorkError` for work that failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.api.compare import compare, noise
    from autotune.api.libraries import compare_libraries
    from autotune.api.options import target
    from autotune.api.predict import Prediction, predict
    from autotune.api.study import Best, Study
    from autotune.api.tune import tune
    from autotune.comparison.noise import NoiseReport
    from autotune.comparison.paired_comparison import ComparisonOutcome
    from autotune.errors import AutotuneError, UsageError, WorkError
    from autotune.space import Parameter, Setting, Space
    from autotune.store import Store
    from autotune.strategies import Observation, Option, Proposal, Strategy
    from autotune.study.search_result import Result
    from autotune.study.search_study import SearchInterrupted
    from autotune.targets.target import Target

_PLACES = {
    "AutotuneError": "errors",
    "Best": "api.study",
    "ComparisonOutcome": "comparison.paired_comparison",
    "NoiseReport": "comparison.noise",
    "Observation": "strategies",
    "Option": "strategies",
    "Parameter": "space",
    "Prediction": "api.predict",
    "Proposal": "strategies",
    "Result": "study.search_result",
    "SearchInterrupted": "study.search_study",
    "Setting": "space",
    "Space": "space",
    "Store": "store",
    "Strategy": "strategies",
    "Study": "api.study",
    "Target": "targets.target",
    "UsageError": "errors",
    "WorkError": "errors",
    "compare": "api.compare",
    "compare_libraries": "api.libraries",
    "noise": "api.compare",
    "predict": "api.predict",
    "target": "api.options",
    "tune": "api.tune",
}
"""The module of each public name; names are loaded at first use, so that commands start fast."""

__all__ = [
    "AutotuneError",
    "Best",
    "ComparisonOutcome",
    "NoiseReport",
    "Observation",
    "Option",
    "Parameter",
    "Prediction",
    "Proposal",
    "Result",
    "SearchInterrupted",
    "Setting",
    "Space",
    "Store",
    "Strategy",
    "Study",
    "Target",
    "UsageError",
    "WorkError",
    "compare",
    "compare_libraries",
    "noise",
    "predict",
    "target",
    "tune",
]


_find = lazy_names(__name__, {name: f"autotune.{place}" for name, place in _PLACES.items()})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mpi-autotune")
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
