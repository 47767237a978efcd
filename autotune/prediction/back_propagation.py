"""Back-propagation with momentum, for layers that each have their own activation.

Pellegrini (4.6) trains 19-16-10-p with tanh, logistic and tanh. scikit-learn has one activation for
all hidden layers and a linear output, so it cannot train that network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from autotune.prediction.measured_cell import Floats

Function = Callable[[Floats], Floats]


def _logistic(x: Floats) -> Floats:
    # As tanh, because exp(-x) overflows.
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


ACTIVATIONS: Mapping[str, Function] = {
    "tanh": np.tanh,
    "logistic": _logistic,
    "identity": lambda x: x,
}
_SLOPES: Mapping[str, Function] = {
    "tanh": lambda out: 1 - out**2,
    "logistic": lambda out: out * (1 - out),
    "identity": np.ones_like,
}
"""The derivative of each activation, from its output."""

Weights = tuple[list[Floats], list[Floats]]
"""Weights of shape (inputs, outputs) and offsets of each layer, the first layer first."""


def drawn_weights(sizes: Sequence[int], rng: np.random.Generator) -> Weights:
    """Uniform weights by the width of both sides (Glorot and Bengio 2010), offsets of 0."""
    pairs = list(pairwise(sizes))
    weights = [
        rng.uniform(-1, 1, (before, after)) * np.sqrt(6 / (before + after))
        for before, after in pairs
    ]
    return weights, [np.zeros(after) for _, after in pairs]


def outputs(start: Weights, activations: Sequence[str], inputs: Floats) -> list[Floats]:
    """What each layer says, the inputs first; each of shape (rows, width)."""
    values = [inputs]
    for weights, offsets, name in zip(*start, activations, strict=True):
        values.append(np.asarray(ACTIVATIONS[name](values[-1] @ weights + offsets)))
    return values


def gradients(at: Weights, activations: Sequence[str], inputs: Floats, targets: Floats) -> Weights:
    """The gradient of half the squared error, summed over the outputs, mean over the rows."""
    values = outputs(at, activations, inputs)
    error = (values[-1] - targets) / len(inputs)
    of_weights: list[Floats] = []
    of_offsets: list[Floats] = []
    for layer in reversed(range(len(activations))):
        error = error * _SLOPES[activations[layer]](values[layer + 1])
        of_weights.insert(0, values[layer].T @ error)
        of_offsets.insert(0, error.sum(axis=0))
        error = error @ at[0][layer].T
    return of_weights, of_offsets


def trained_weights(
    start: Weights,
    activations: Sequence[str],
    inputs: Floats,
    targets: Floats,
    *,
    rate: float,
    momentum: float,
    steps: int,
) -> Weights:
    """The weights after ``steps`` steps against the gradient over all rows at once.

    ``inputs`` has shape (rows, features), ``targets`` (rows, outputs). A step is ``momentum`` times
    the step before it less ``rate`` times the gradient.
    """
    at = [w.copy() for w in start[0]], [b.copy() for b in start[1]]
    moves = [np.zeros_like(w) for w in at[0]], [np.zeros_like(b) for b in at[1]]
    for _ in range(steps):
        slopes = gradients(at, activations, inputs, targets)
        for places, own_moves, own_slopes in zip(at, moves, slopes, strict=True):
            for place, move, slope in zip(places, own_moves, own_slopes, strict=True):
                move *= momentum
                move -= rate * slope
                place += move
    return at
