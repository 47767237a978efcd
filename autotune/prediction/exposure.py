"""Exposure: the share of a program's time that a parameter can affect, and a model based on it.

The algorithm of a broadcast has no effect on a program that never broadcasts, and an eager limit
only affects messages between its old and its new value.  The trace shows this without any learning.

The model is a ridge regression: log(T / T_default) is a sum over the parameters of a setting, and
the effect of a level is proportional to the :class:`Exposure` of the program to it.  So the log
ratio of the default is exactly 0, and so is the effect of parameters of operations that the program
does not use.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from autotune.errors import UsageError
from autotune.prediction.examples import Example, distinct
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, mapping, number, sequence
from autotune.prediction.scorer import NODES, Effect, Options, Scorer, model_values
from autotune.space import Setting, Value
from autotune.space.parameter import operation_of
from runner.trace.schema import COLLECTIVES, SIZE_BINS

PATTERN_SHARES = {
    "bcast": "one_to_n_share",
    "scatter": "one_to_n_share",
    "reduce": "n_to_one_share",
    "gather": "n_to_one_share",
}
"""The feature with the share of the communication time of an operation; n-to-n for all others."""
_SPREAD = ("alltoall", "scatter")
"""Collectives that cut the buffer of a rank into one part for each rank."""
_LIMIT = re.compile(r"(?<!_rndv)_(eager_limit|eager_threshold|max_send_size)$", re.IGNORECASE)
"""Names of limits on the bytes of one message or of one piece of it."""
_LATENCY = 16384.0
"""Latency in bytes: the fixed cost of a message equals the cost of sending this many bytes."""
LEAST_SHARE = 0.005
"""A parameter that acts on a smaller share of the run time is not proposed."""
LARGE = 13
"""From 2^13 bytes on, a collective's cost depends on its bytes; below, on its messages."""


@dataclass(frozen=True)
class Exposure:
    """The features of one program by name, and the number of nodes on which it was traced."""

    values: Mapping[str, float]

    @property
    def nodes(self) -> float:
        """The number of nodes on which the program was traced."""
        return self.values[NODES]

    def to(self, parameter: str) -> tuple[float, float]:
        """Shares of the run time that the parameter can affect: in messages between two ranks, and
        in collectives; each 0 to 1."""
        channel = self._channel_share(parameter) * self.values["comm_fraction"]
        p2p, coll = self._parts(parameter)
        return channel * p2p, channel * coll

    def crossing(self, parameter: str, old: float, new: float) -> float:
        """Share of the run time in messages with a size between two limits, ``old`` and ``new``."""
        if not _LIMIT.search(parameter):
            return 0.0
        low, high = sorted((old, new))
        part = sum(share for size, share in self._traffic if low < size <= high)
        return self._channel_share(parameter) * self.values["comm_fraction"] * part

    def large(self, parameter: str) -> float:
        """1 if the parameter's collective moves long messages, 0 if short ones."""
        operation = operation_of(parameter)
        if operation in ("", "barrier"):
            return 0.0
        return 1.0 if self._each(operation) >= 2**LARGE else 0.0

    def _channel_share(self, parameter: str) -> float:
        """Share of the messages, 0 to 1, that use the network or memory of the parameter."""
        if self.nodes > 1:
            # The trace does not say how many of the messages stay within a node.
            return 0.5 if parameter.startswith(("btl_sm", "btl_vader", "smsc")) else 1.0
        return 0.0 if parameter.startswith(("btl_tcp", "coll_han")) else 1.0

    def _parts(self, parameter: str) -> tuple[float, float]:
        """Shares of the communication time: messages between two ranks, and collectives."""
        if operation := operation_of(parameter):
            barrier = operation == "barrier"
            return 0.0, self.values["sync_share"] if barrier else self._operations[operation]
        coll = self.values["coll_share"] + self.values["sync_share"]
        if parameter.startswith("coll_"):
            return 0.0, coll
        p2p = self.values["p2p_share"] + self.values["wait_share"]
        if parameter in ("map_by", "rank_by"):
            # With ranks placed round robin, neighbouring ranks are on different nodes.
            p2p /= max(self.values["p2p_distance"], 1.0)
        return p2p, coll

    @cached_property
    def _operations(self) -> dict[str, float]:
        """Share of each collective operation: the share of its kind, divided by calls and bytes."""
        costs = {
            name: self.values[f"{name}_calls"] * (1 + self.values[f"{name}_bytes"] / _LATENCY)
            for name in COLLECTIVES
        }
        shares = {}
        for name, cost in costs.items():
            kind = PATTERN_SHARES.get(name, "n_to_n_share")
            whole = sum(
                c for n, c in costs.items() if PATTERN_SHARES.get(n, "n_to_n_share") == kind
            )
            shares[name] = self.values[kind] * cost / whole if whole else 0.0
        return shares

    @cached_property
    def _traffic(self) -> list[tuple[float, float]]:
        """Sizes of messages in bytes, each with its share of the communication time."""
        names = [f"p2p_size_2e{k:02d}" for k in range(SIZE_BINS - 1)]
        costs = [self.values[n] * (1 + 2.0**k / _LATENCY) for k, n in enumerate(names)]
        whole = sum(costs) or 1.0
        p2p = self.values["p2p_share"] + self.values["wait_share"]
        # The middle of a bin on the logarithmic scale of the sizes.
        sizes = [(1.4 * 2.0**k, p2p * cost / whole) for k, cost in enumerate(costs) if cost]
        sizes += [(self._each(n), share) for n, share in self._operations.items() if share]
        return sizes

    def _each(self, operation: str) -> float:
        """Bytes of one message of the collective."""
        ranks = self.values["ranks"] if operation in _SPREAD else 1.0
        return self.values[f"{operation}_bytes"] / max(ranks, 1.0)


def acting(setting: Setting, values: Mapping[str, float]) -> Setting:
    """The setting without its :func:`unused_parameters`, which cannot affect the program."""
    return setting.without(*unused_parameters(setting, [values]))


def unused_parameters(
    parameters: Iterable[str], launches: Sequence[Mapping[str, float]]
) -> tuple[str, ...]:
    """Parameters that affect less than :data:`LEAST_SHARE` of the run time in each traced launch,
    for example the algorithm of a barrier in a program without one. ``launches``: values by feature
    of each launch, at least one."""
    exposures = [Exposure(values) for values in launches]
    return tuple(
        p for p in parameters if all(sum(exposure.to(p)) < LEAST_SHARE for exposure in exposures)
    )


PARTS = tuple(
    f"{where} {what}"
    for where in ("within", "between")
    for what in ("p2p", "coll", "large", "up", "down")
)
"""The effects of a parameter, within a node or between nodes: of a level on messages between two
ranks (``p2p``), on collectives (``coll``) and on collectives with long messages (``large``); of a
limit that is raised (``up``) or lowered (``down``)."""
_ROWS = 100.0
"""Weight of all settings of one program together, regardless of their number."""
_CROSSING_WEIGHT = 2.0
"""Factor for messages between two limits: sending messages at once is the purpose of a limit, so
more effect is expected there."""

Column = tuple[str, str, Value | None]
"""Parameter, part, level (None for ``up`` and ``down``, which hold for all levels)."""


@dataclass(frozen=True)
class Effects:
    """Log ratio of each column at full exposure, its standard deviation, and the standard deviation
    of a column that was never seen."""

    columns: Mapping[Column, int]
    means: Floats
    deviations: Floats
    unseen: float


class ExposureModel(Scorer):
    """``ridge`` is the variance of a row (one setting of one program) divided by the variance of
    effects.  ``caution`` standard deviations of the estimate are added to each score."""

    kind: ClassVar[str] = "exposure"
    summary: ClassVar[str] = "ridge regression on what each parameter can touch in the program"
    grid: ClassVar[tuple[Options, ...]] = tuple(
        {"ridge": ridge, "caution": caution}
        for ridge, caution in product((0.1, 0.3, 1.0, 3.0), (0.0, 0.1, 0.2, 0.4, 0.8, 1.6))
    )

    def __init__(self, effects: Effects, caution: float, defaults: Mapping[str, float]):
        self._effects = effects
        self._caution = caution
        self._defaults = dict(defaults)

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> ExposureModel:
        numeric_defaults = {n: float(v) for n, v in defaults.items() if isinstance(v, int | float)}
        levels = sorted({pair for s in distinct(examples) for pair in s.items()}, key=repr)
        exposures = [Exposure(model_values(e.features)) for e in examples]
        amounts_by_example = [
            {pair: dict(_amounts(x, *pair, numeric_defaults)) for pair in levels} for x in exposures
        ]
        columns = {c: None for of in amounts_by_example for amounts in of.values() for c in amounts}
        places = {column: at for at, column in enumerate(sorted(columns, key=repr))}
        ridge = float(options["ridge"])
        squares, sums = np.eye(len(places)) * ridge, np.zeros(len(places))
        for example, amounts_of in zip(examples, amounts_by_example, strict=True):
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
        return cls(effects, float(options["caution"]), numeric_defaults)

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        exposure, effects = Exposure(values), self._effects
        levels = {pair for setting in candidates for pair in setting.items()}
        by_pair: dict[tuple[str, Value], tuple[float, float]] = {}
        for pair in levels:
            mean = variance = 0.0
            for column, amount in _amounts(exposure, *pair, self._defaults):
                at = effects.columns.get(column)
                mean += amount * (0.0 if at is None else effects.means[at])
                variance += (
                    amount * (effects.unseen if at is None else effects.deviations[at])
                ) ** 2
            by_pair[pair] = mean, variance
        sums = [np.sum([by_pair[p] for p in s.items()] or [(0.0, 0.0)], axis=0) for s in candidates]
        means, variances = np.array(sums).reshape(-1, 2).T
        return np.asarray(means + self._caution * np.sqrt(variances), dtype=np.float64)

    def why(self, values: Mapping[str, float], setting: Setting) -> dict[str, Effect]:
        exposure, effects = Exposure(values), self._effects
        effects_by_name = {}
        for name, value in setting.items():
            amounts = _amounts(exposure, name, value, self._defaults)
            terms = [(effects.columns.get(column), amount) for column, amount in amounts]
            log = sum(amount * effects.means[at] for at, amount in terms if at is not None)
            effects_by_name[name] = Effect(min(1.0, sum(exposure.to(name))), float(log))
        return effects_by_name

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
    def from_json(cls, data: Mapping[str, Any]) -> ExposureModel:
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
    """The share of the program's time that each effect of a level can touch; zeros are left out."""
    where = "between" if exposure.nodes > 1 else "within"
    p2p, coll = exposure.to(name)
    old, crossing, way = defaults.get(name), 0.0, "up"
    if old is not None and isinstance(value, int | float):
        crossing = _CROSSING_WEIGHT * exposure.crossing(name, old, value)
        way = "up" if value > old else "down"
    for part, level, amount in (
        ("p2p", value, p2p),
        ("coll", value, coll),
        ("large", value, coll * exposure.large(name)),
        (way, None, crossing),
    ):
        if amount and math.isfinite(amount):
            yield (name, f"{where} {part}", level), amount


def _level(name: str, value: Any, none: bool) -> Value | None:
    """A level as in a setting; with ``none``, None for null. Raises ValueError for anything
    else."""
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
