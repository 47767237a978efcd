"""The composed model of layouts: the parts of a traced program's time, put together.

The time under a layout is the computation, the communication that is not hidden, and what the
runtime costs for each task and message. How much is hidden and what a runtime costs are learned
from recorded grids; what remains is learned from what layouts like this one did beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.layout_examples import LayoutExample
from autotune.prediction.layout_models import LayoutNeighbours, LayoutScorer, program_rows
from autotune.prediction.layout_parts import PARTS
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, mapping
from autotune.prediction.scorer import Options

_COLUMN = {name: at for at, name in enumerate(PARTS)}
_HIDING = ("hidden_split", "hidden_tasks")
_COSTS = PARTS[PARTS.index("threads") :]
"""Parts with a cost in microseconds, those of a runtime beside those of all."""
_SHARED = ("threads", "tasks", "messages")
OWN = 0.01
"""Weight that holds the own costs of a runtime near 0, per microsecond: few programs ran on it."""
_MOST_US = 1000.0
_LEAST_RATIO = 0.05


class LayoutComposition(LayoutScorer):
    """``effects``: shares that are hidden, and costs in microseconds, in the order of ``_HIDING``
    and ``_COSTS``. ``rest``: neighbours whose log ratios are those beyond the composition."""

    kind: ClassVar[str] = "composed"
    grid: ClassVar[tuple[Options, ...]] = LayoutNeighbours.grid

    def __init__(self, effects: Floats, rest: LayoutNeighbours):
        self._effects = effects
        self._rest = rest

    @classmethod
    def fit(cls, examples: Sequence[LayoutExample], options: Options) -> LayoutComposition:
        traced = [e for e in examples if e.parts[0, _COLUMN["known"]]]
        if not traced:
            return cls(
                np.zeros(len(_HIDING) + len(_COSTS)), LayoutNeighbours.fit(examples, options)
            )
        points, logs, programs = program_rows(traced)
        parts = np.concatenate([e.parts[1:] for e in traced])
        effects = _fit_effects(parts, logs, programs)
        beyond = logs - _composed(parts, effects)
        width = float(options["width"])
        return cls(effects, LayoutNeighbours(points, beyond, programs, width))

    def scores(self, points: Floats, parts: Floats) -> Floats:
        """As of the base; layouts of a program without a trace have the score 0."""
        has_trace = parts[:, _COLUMN["known"]]
        own = _composed(parts, self._effects) + self._rest.scores(points, parts)
        return np.asarray(has_trace * own, dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {
            "parts": list(PARTS),
            "effects": self._effects.tolist(),
            "rest": self._rest.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayoutComposition:
        if data.get("parts") != list(PARTS):
            raise ValueError("parts: written for other parts of a program's time")
        effects = floats(data, "effects", (len(_HIDING) + len(_COSTS),))
        return cls(effects, LayoutNeighbours.from_json(mapping(data, "rest")))


def _composed(parts: Floats, effects: Floats) -> Floats:
    """log(T / T_flat) of each row, shape (rows,); 0 for rows of programs without a trace."""
    hidden = parts[:, [_COLUMN[name] for name in _HIDING]] @ effects[: len(_HIDING)]
    costs = parts[:, [_COLUMN[name] for name in _COSTS]] @ effects[len(_HIDING) :]
    ratio = parts[:, _COLUMN["compute"]] + parts[:, _COLUMN["exposed"]] - hidden + costs
    has_trace = parts[:, _COLUMN["known"]] > 0
    return np.asarray(np.log(np.where(has_trace, np.maximum(ratio, _LEAST_RATIO), 1.0)))


def _fit_effects(parts: Floats, logs: Floats, programs: Floats) -> Floats:
    """The effects with the least squares of what remains; every program has the same weight."""
    from scipy.optimize import least_squares

    weights = np.zeros(len(logs))
    for program in np.unique(programs):
        rows = programs == program
        weights[rows] = 1 / np.sqrt(rows.sum())
    own = np.array([name not in _SHARED for name in _COSTS])

    def errors(effects: Floats) -> Floats:
        beyond = (logs - _composed(parts, effects)) * weights
        return np.concatenate([beyond, OWN * effects[len(_HIDING) :][own]])

    start = np.concatenate([np.full(len(_HIDING), 0.5), np.where(own, 0.01, 1.0)])
    most = np.concatenate([np.ones(len(_HIDING)), np.full(len(_COSTS), _MOST_US)])
    result = least_squares(errors, start, bounds=(0.0, most), max_nfev=60)
    return np.asarray(result.x, dtype=np.float64)
