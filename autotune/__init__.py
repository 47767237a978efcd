"""Find out how an MPI program should be started on a machine, and prove it.

The public names are :func:`tune`, :func:`compare`, :func:`noise` and :func:`predict`, which equal
the commands of these names, :func:`compare_libraries` (the command ``compare`` with two libraries)
and :class:`Study`, which reads a stored study. :func:`replay` tries a strategy on recorded runs,
and :func:`plot_convergence` draws searches. The errors are those of the command line, with keywords
in place of options: :class:`UsageError` for wrong input, :class:`WorkError` for work that failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.api.compare import compare, noise
    from autotune.api.convergence import Picture, plot_convergence
    from autotune.api.libraries import compare_libraries
    from autotune.api.options import target
    from autotune.api.predict import Prediction, predict
    from autotune.api.replay import Replay, replay
    from autotune.api.study import Best, Study
    from autotune.api.tune import tune
    from autotune.comparison.comparison_outcome import ComparisonOutcome
    from autotune.comparison.noise import NoiseReport
    from autotune.errors import AutotuneError, UsageError, WorkError
    from autotune.space import Parameter, Setting, Space
    from autotune.store import Store
    from autotune.strategies import Observation, Option, OptionValue, Proposal, Strategy
    from autotune.study.search_result import Result
    from autotune.study.search_study import SearchInterrupted
    from autotune.targets.target import Target
    from runner.types import RunRecord

_PLACES = {
    "AutotuneError": "autotune.errors",
    "Best": "autotune.api.study",
    "ComparisonOutcome": "autotune.comparison.comparison_outcome",
    "NoiseReport": "autotune.comparison.noise",
    "Observation": "autotune.strategies",
    "Option": "autotune.strategies",
    "OptionValue": "autotune.strategies",
    "Parameter": "autotune.space",
    "Picture": "autotune.api.convergence",
    "Prediction": "autotune.api.predict",
    "Proposal": "autotune.strategies",
    "Replay": "autotune.api.replay",
    "Result": "autotune.study.search_result",
    "RunRecord": "runner.types",
    "SearchInterrupted": "autotune.study.search_study",
    "Setting": "autotune.space",
    "Space": "autotune.space",
    "Store": "autotune.store",
    "Strategy": "autotune.strategies",
    "Study": "autotune.api.study",
    "Target": "autotune.targets.target",
    "UsageError": "autotune.errors",
    "WorkError": "autotune.errors",
    "compare": "autotune.api.compare",
    "compare_libraries": "autotune.api.libraries",
    "noise": "autotune.api.compare",
    "plot_convergence": "autotune.api.convergence",
    "predict": "autotune.api.predict",
    "replay": "autotune.api.replay",
    "target": "autotune.api.options",
    "tune": "autotune.api.tune",
}
"""The module of each public name; names are loaded at first use, so that commands start fast."""

__all__ = [
    "AutotuneError",
    "Best",
    "ComparisonOutcome",
    "NoiseReport",
    "Observation",
    "Option",
    "OptionValue",
    "Parameter",
    "Picture",
    "Prediction",
    "Proposal",
    "Replay",
    "Result",
    "RunRecord",
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
    "plot_convergence",
    "predict",
    "replay",
    "target",
    "tune",
]


_find = lazy_names(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mpi-autotune")
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
