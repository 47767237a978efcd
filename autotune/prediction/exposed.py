"""The gain of a setting from what each of its parameters can touch in a program.

Ridge regression: log(T / T_default) is a sum over the parameters of a setting, and what a level
does is in proportion to the program's :class:`~autotune.prediction.exposure.Exposure` to it.  The
default's is exactly 0 by construction, and so is that of what the program never does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from autotune.errors import UsageError
from autotune.prediction.examples import Example, Floats, distinct
from autotune.prediction.exposure import Exposure
from autotune.prediction.reading import floats, mapping, number, sequence
from autotune.prediction.scaling import described
from autotune.prediction.scorer import Effect, Options, Scorer
from autotune.space import Setting, Value

PARTS = tuple(
    f"{where} {what}"
    for where in ("within", "between")
    for what in ("p2p", "coll", "large", "up", "down")
)
"""Within a node or between nodes: what a level does to messages between two ranks, to collectives,
and to those of long messages; what a limit does to messages that it lets pass or holds back."""
_ROWS = 100.0
"""What all settings of a program weigh together, however many it ran."""
_CROSSED = 2.0
"""To let a message pass at once is what a limit is for: more is expected of it than of others."""

Column = tuple[str, str, Value | None]
"""Parameter, part, level (None for ``up`` and ``down``, which hold for all levels)."""


@dataclass(frozen=True)
class Effects:
    """Log ratio of each column at full exposure, its standard deviation, and that of a column
    that was never seen."""

    columns: Mapping[Column, int]
    means: Floats
    deviations: Floats
    unseen: float


class Exposed(Scorer):
    """``ridge`` is the variance of a program's setting over that of effects; ``caution`` is added
    for each standard deviation of what is not known."""

    kind: ClassVar[str] = "exposure"
    summary: ClassVar[str] = "ridge regression on what each parameter can touch in the program"
    grid: ClassVar[tuple[Options, ...]] = tuple(
        {"ridge": ridge, "caution": caution}
        for ridge, caution in product((0.1, 0.3, 1.0, 3.0), (0.0, 0.1, 0.2, 0.4))
    )

    def __init__(self, effects: Effects, caution: float, defaults: Mapping[str, float]):
        self._effects = effects
        self._caution = caution
        self._defaults = dict(defaults)

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Exposed:
        known = {n: float(v) for n, v in defaults.items() if isinstance(v, int | float)}
        levels = sorted({pair for s in distinct(examples) for pair in s.items()}, key=repr)
        exposures = [Exposure(described(e.features)) for e in examples]
        seen = [{pair: dict(_amounts(x, *pair, known)) for pair in levels} for x in exposures]
        columns = {c: None for of in seen for amounts in of.values() for c in amounts}
        places = {column: at for at, column in enumerate(sorted(columns, key=repr))}
        ridge = float(options["ridge"])
        squares, sums = np.eye(len(places)) * ridge, np.zeros(len(places))
        for example, amounts_of in zip(examples, seen, strict=True):
            rows = np.zeros((len(example.settings), len(places)))
            for row, setting in enumerate(example.settings):
                for pair in setting.items():
                    for column, amount in amounts_of[pair].items():
                        rows[row, places[column]] = amount
            weights = np.sqrt([max(1, len(runs)) for runs in example.runs])
            weights *= _ROWS / weights.sum()
            squares += (rows.T * weights) @ rows
            sums += (rows.T * weights) @ example.logs
        spread = np.linalg.inv(squares)
        effects = Effects(places, spread @ sums, np.sqrt(spread.diagonal()), ridge**-0.5)
        return cls(effects, float(options["caution"]), known)

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        exposure, effects = Exposure(values), self._effects
        levels = {pair for setting in candidates for pair in setting.items()}
        known: dict[tuple[str, Value], tuple[float, float]] = {}
        for pair in levels:
            mean = variance = 0.0
            for column, amount in _amounts(exposure, *pair, self._defaults):
                at = effects.columns.get(column)
                mean += amount * (0.0 if at is None else effects.means[at])
                variance += (
                    amount * (effects.unseen if at is None else effects.deviations[at])
                ) ** 2
            known[pair] = mean, variance
        sums = [np.sum([known[p] for p in s.items()] or [(0.0, 0.0)], axis=0) for s in candidates]
        means, variances = np.array(sums).reshape(-1, 2).T
        return np.asarray(means + self._caution * np.sqrt(variances), dtype=np.float64)

    def why(self, values: Mapping[str, float], setting: Setting) -> dict[str, Effect]:
        exposure, effects = Exposure(values), self._effects
        found = {}
        for name, value in setting.items():
            amounts = _amounts(exposure, name, value, self._defaults)
            known = [(effects.columns.get(column), amount) for column, amount in amounts]
            log = sum(amount * effects.means[at] for at, amount in known if at is not None)
            found[name] = Effect(min(1.0, sum(exposure.to(name))), float(log))
        return found

    def to_json(self) -> dict[str, Any]:
        parameters: dict[str, dict[str, list[Any]]] = defaultdict(dict)
        effects = self._effects
        for (name, part, level), at in effects.columns.items():
            row = [level, float(effects.means[at]), float(effects.deviations[at])]
            parameters[name].setdefault(part, []).append(row)
        return {
            "effects": parameters,
            "unseen": effects.unseen,
            "caution": self._caution,
            "defaults": self._defaults,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Exposed:
        columns: dict[Column, int] = {}
        figures: list[list[Any]] = []
        parameters = mapping(data, "effects")
        for name in parameters:
            parts = mapping(parameters, name)
            for part in parts:
                if part not in PARTS:
                    raise ValueError(
                        f"effects of {name}: {part!r} is not known; "
                        f"expected one of {', '.join(PARTS)}"
                    )
                for row in sequence(parts, part):
                    if not isinstance(row, list) or len(row) != 3:
                        raise ValueError(f"effects of {name}: expected rows of three")
                    column = (name, part, _level(name, row[0], part.endswith(("up", "down"))))
                    if column in columns:
                        raise ValueError(f"effects of {name}: {row[0]!r} is given twice")
                    columns[column] = len(figures)
                    figures.append(row[1:])
        table = floats({"effects": figures}, "effects", (None, 2))
        if (table[:, 1] < 0).any():
            raise ValueError("effects: expected deviations of 0 or more")
        defaults = mapping(data, "defaults")
        effects = Effects(columns, table[:, 0], table[:, 1], number(data, "unseen", 0, 1e6))
        return cls(
            effects,
            number(data, "caution", 0, 100),
            {name: number(defaults, name, -1e300, 1e300) for name in defaults},
        )


def _amounts(
    exposure: Exposure, name: str, value: Value, defaults: Mapping[str, float]
) -> Iterator[tuple[Column, float]]:
    """How much of the program each effect of a level would touch, where that is anything."""
    where = "between" if exposure.nodes > 1 else "within"
    p2p, coll = exposure.to(name)
    old, crossed, way = defaults.get(name), 0.0, "up"
    if old is not None and isinstance(value, int | float):
        crossed = _CROSSED * exposure.crossing(name, old, value)
        way = "up" if value > old else "down"
    for part, level, amount in (
        ("p2p", value, p2p),
        ("coll", value, coll),
        ("large", value, coll * exposure.large(name)),
        (way, None, crossed),
    ):
        if amount and math.isfinite(amount):
            yield (name, f"{where} {part}", level), amount


def _level(name: str, value: Any, none: bool) -> Value | None:
    """A level as a setting has it; None where that is asked for."""
    if none != (value is None):
        raise ValueError(f"effects of {name}: {value!r} is not a level")
    if value is None:
        return None
    if not isinstance(value, int | float | str):
        raise ValueError(f"effects of {name}: {value!r} is not a level")
    try:
        return Setting({name: value})[name]
    except UsageError as problem:
        raise ValueError(f"effects of {name}: {problem}") from None
