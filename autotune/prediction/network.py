"""Multi-layer perceptrons (Pellegrini 4.6), stored as tables.

That of the thesis has tanh, logistic and tanh layers, and is trained by back-propagation with
momentum. The other has tanh layers and a linear output, and is fitted by scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.back_propagation import ACTIVATIONS, drawn_weights, trained_weights
from autotune.prediction.examples import Example, distinct, means
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, mapping, number, sequence, texts
from autotune.prediction.scorer import SETS, Options, Scaler, Scorer, model_values
from autotune.prediction.values import ValueCode, near_scores
from autotune.space import Setting, Value

LAYER_SIZES = (16, 10)
THESIS_ACTIVATIONS = ("tanh", "logistic", "tanh")
STEPS = 4000
"""Steps of back-propagation. The thesis does not say how many it made; after a thousand the network
has often learned no more than the mean."""
_INPUT = np.sqrt(19.0)
"""The scaler divides by the root of the number of features; a network needs deviations near 1."""


@dataclass(frozen=True)
class Layers:
    """Weights, offsets and activations, first layer first.

    Without ``activations``: tanh between the layers, a linear output.
    """

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    activations: tuple[str, ...] = ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The activation of each layer."""
        return self.activations or ("tanh",) * (len(self.weights) - 1) + ("identity",)

    @classmethod
    def fit(cls, inputs: Floats, targets: Floats, **options: Any) -> Layers:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        network = MLPRegressor(
            hidden_layer_sizes=LAYER_SIZES, activation="tanh", random_state=0, **options
        )
        # For such small matrices, waking the threads of BLAS costs more than the arithmetic.
        with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
            # Training stops at a fixed number of steps on purpose, so the warning is not shown.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(inputs * _INPUT, targets if targets.shape[1] > 1 else targets[:, 0])
        return cls(tuple(network.coefs_), tuple(network.intercepts_))

    @classmethod
    def of_thesis(
        cls, inputs: Floats, targets: Floats, *, rate: float, momentum: float, seed: int
    ) -> Layers:
        """The network of the thesis after ``STEPS`` steps of back-propagation.

        ``inputs`` has shape (programs, features), ``targets`` (programs, parameters).
        """
        from threadpoolctl import threadpool_limits

        sizes = (inputs.shape[1], *LAYER_SIZES, targets.shape[1])
        start = drawn_weights(sizes, np.random.default_rng(seed))
        with threadpool_limits(limits=1, user_api="blas"):
            weights, offsets = trained_weights(
                start, THESIS_ACTIVATIONS, inputs * _INPUT, targets,
                rate=rate, momentum=momentum, steps=STEPS,
            )  # fmt: skip
        return cls(tuple(weights), tuple(offsets), THESIS_ACTIVATIONS)

    def times(self, factor: float) -> Layers:
        """The same network with its outputs multiplied; the output must be linear."""
        return Layers(
            (*self.weights[:-1], self.weights[-1] * factor),
            (*self.offsets[:-1], self.offsets[-1] * factor),
        )

    def __call__(self, inputs: Floats) -> Floats:
        values = inputs * _INPUT
        for weights, offsets, name in zip(self.weights, self.offsets, self.functions, strict=True):
            values = ACTIVATIONS[name](values @ weights + offsets)
        return np.asarray(values, dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        stated = {"activations": list(self.activations)} if self.activations else {}
        return {
            "weights": [w.tolist() for w in self.weights],
            "offsets": [o.tolist() for o in self.offsets],
            **stated,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], inputs: int, outputs: int) -> Layers:
        rows, ends = sequence(data, "weights"), sequence(data, "offsets")
        if len(rows) != len(ends) or not rows:
            raise ValueError("weights and offsets: expected one of each for every layer")
        weights, offsets, width = [], [], inputs
        for row, end in zip(rows, ends, strict=True):
            weights.append(floats({"weights": row}, "weights", (width, None)))
            width = weights[-1].shape[1]
            offsets.append(floats({"offsets": end}, "offsets", (width,)))
        if width != outputs:
            raise ValueError(f"weights: expected {outputs} outputs, not {width}")
        activations = texts(data, "activations") if "activations" in data else ()
        if activations and (len(activations) != len(weights) or {*activations} - {*ACTIVATIONS}):
            raise ValueError(f"activations: expected {len(weights)} of {', '.join(ACTIVATIONS)}")
        return cls(tuple(weights), tuple(offsets), activations)


class Network(Scorer):
    """One output for each setting: its log ratio less the mean over all programs."""

    kind: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "a perceptron 16-10 with the log ratio of every setting as output"
    grid: ClassVar[tuple[Options, ...]] = tuple(
        {"alpha": alpha, "features": chosen} for chosen in SETS for alpha in (0.03, 0.3)
    )

    def __init__(self, scaler: Scaler, layers: Layers, keys: Sequence[str], middle: Floats):
        self._scaler = scaler
        self._layers = layers
        self._place = {key: at for at, key in enumerate(keys)}
        self._middle = middle

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Network:
        scaler = Scaler.fit(examples, SETS[str(options["features"])])
        tables = [means([e]) for e in examples]
        common = [
            s.key for s in distinct(examples) if 2 * sum(s.key in t for t in tables) > len(tables)
        ]
        overall = means(examples)
        middle = np.array([overall[key] for key in common])
        # A program that did not run a setting gets the mean, so it has no influence.
        targets = np.array([[t.get(key, overall[key]) for key in common] for t in tables]) - middle
        inputs = np.array([scaler(model_values(e.features)) for e in examples])
        alpha = float(options["alpha"])
        # Log ratios are a few per cent: unscaled, the penalty on the weights would dominate.
        size = max(float(targets.std()), 1e-6)
        layers = Layers.fit(inputs, targets / size, solver="lbfgs", alpha=alpha, max_iter=60)
        layers = layers.times(size)
        return cls(scaler, layers, common, middle)

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        out = self._layers(self._scaler(values)) + self._middle
        return np.array(
            [
                out[self._place[c.key]] if len(c) and c.key in self._place else 0.0
                for c in candidates
            ]
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "scaler": self._scaler.to_json(),
            "layers": self._layers.to_json(),
            "keys": list(self._place),
            "middle": self._middle.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Network:
        scaler = Scaler.from_json(mapping(data, "scaler"))
        keys = texts(data, "keys")
        layers = Layers.from_json(mapping(data, "layers"), len(scaler.names), len(keys))
        return cls(scaler, layers, keys, floats(data, "middle", (len(keys),)))


class ThesisNetwork(Scorer):
    """The network of the thesis, 19-16-10-p: the outputs are the values of p parameters.
    Uncertainty never makes it name the default.  Its option ``seed`` draws the first weights."""

    kind: ClassVar[str] = "mlp-thesis"
    summary: ClassVar[str] = "19-16-10-p as in the thesis: the outputs are the values"
    grid: ClassVar[tuple[Options, ...]] = ({"rate": 0.25, "momentum": 0.8},)

    def __init__(self, scaler: Scaler, layers: Layers, code: ValueCode, mean_gain: float):
        self._scaler = scaler
        self._layers = layers
        self._code = code
        self._mean_gain = mean_gain

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> ThesisNetwork:
        scaler = Scaler.fit(examples, SETS["thesis"])
        code = ValueCode.of([s for e in examples for s in e.settings], defaults)
        layers = Layers.of_thesis(
            np.array([scaler(model_values(e.features)) for e in examples]),
            np.array([code.encode(e.settings[e.fastest]) for e in examples]),
            rate=float(options["rate"]),
            momentum=float(options["momentum"]),
            seed=int(options.get("seed", 0)),
        )
        return cls(scaler, layers, code, float(np.mean([e.fastest_log for e in examples])))

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        target = self._code.snap(np.atleast_1d(self._layers(self._scaler(values))))
        return near_scores(self._code, target, candidates, self._mean_gain)

    def to_json(self) -> dict[str, Any]:
        return {
            "scaler": self._scaler.to_json(),
            "layers": self._layers.to_json(),
            "code": self._code.to_json(),
            "expected": self._mean_gain,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ThesisNetwork:
        scaler = Scaler.from_json(mapping(data, "scaler"))
        code = ValueCode.from_json(mapping(data, "code"))
        layers = Layers.from_json(mapping(data, "layers"), len(scaler.names), len(code.names))
        return cls(scaler, layers, code, number(data, "expected", -100, 100))
