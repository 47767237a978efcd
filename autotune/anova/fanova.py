"""Functional analysis of variance over a forest: which parameters its predictions hang on.

A tree cuts the grid of levels into boxes with one value each, so the mean over all other parameters
is a sum over boxes and exact (after Hutter, Hoos and Leyton-Brown 2014).  Parameters are taken as
equally likely at each of their levels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestRegressor

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Parts:
    """Shares of the variance of a tree's predictions: ``alone`` shape (parameters,), ``pairs`` the
    same for pairs beyond what their members do alone."""

    alone: Floats
    pairs: dict[tuple[int, int], float]


@dataclass(frozen=True)
class _Boxes:
    """Leaves of a tree.  ``inside[p]``: shape (leaves, levels of p), whether a leaf has a level."""

    values: Floats
    shares: Floats
    inside: list[Bools]

    def marginal(self, *parameters: int) -> Floats:
        """Mean prediction for every combination of levels of one or two parameters."""
        weight = self.values * self.shares
        for p in parameters:
            weight = weight / self.inside[p].mean(axis=1)
        if len(parameters) == 1:
            return np.asarray(weight @ self.inside[parameters[0]], dtype=np.float64)
        first, second = (self.inside[p].astype(np.float64) for p in parameters)
        return np.asarray((first * weight[:, None]).T @ second, dtype=np.float64)


def parts_of(
    forest: RandomForestRegressor, levels: Sequence[int], pairs_of: Sequence[int]
) -> list[Parts]:
    """Shares per tree; trees that predict one value everywhere are left out.

    ``levels``: number of levels of every parameter, coded from 0 as the forest saw them.  Pairs are
    computed among ``pairs_of`` only: their number grows with the square.
    """
    found = []
    for estimator in forest.estimators_:
        boxes = _boxes(estimator.tree_, levels)
        mean = float(boxes.values @ boxes.shares)
        total = float((boxes.values - mean) ** 2 @ boxes.shares)
        if total > 0:
            found.append(_parts(boxes, mean, total, len(levels), pairs_of))
    return found


def _parts(boxes: _Boxes, mean: float, total: float, count: int, pairs_of: Sequence[int]) -> Parts:
    alone = {p: boxes.marginal(p) - mean for p in range(count)}
    shares = np.array([float((alone[p] ** 2).mean()) / total for p in range(count)])
    pairs = {}
    for a, b in itertools.combinations(sorted(pairs_of), 2):
        joint = boxes.marginal(a, b) - mean - alone[a][:, None] - alone[b][None, :]
        pairs[a, b] = float((joint**2).mean()) / total
    return Parts(shares, pairs)


def _boxes(tree: object, levels: Sequence[int]) -> _Boxes:
    """Walk down a tree; every leaf keeps which levels of each parameter lead to it."""
    left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
    feature, threshold = tree.feature, tree.threshold  # type: ignore[attr-defined]
    value = tree.value[:, 0, 0]  # type: ignore[attr-defined]
    rows: list[tuple[float, list[Bools]]] = []
    waiting: list[tuple[int, list[Bools]]] = [(0, [np.ones(n, dtype=bool) for n in levels])]
    while waiting:
        node, inside = waiting.pop()
        if left[node] == right[node]:
            rows.append((float(value[node]), inside))
            continue
        p = int(feature[node])
        low = np.arange(levels[p]) <= threshold[node]
        for child, part in ((left[node], low), (right[node], ~low)):
            cut = inside[p] & part
            # A cut outside the levels that are left makes an empty box: it is never reached.
            if cut.any():
                waiting.append((int(child), [*inside[:p], cut, *inside[p + 1 :]]))
    values = np.array([v for v, _ in rows])
    inside_of = [np.array([inside[p] for _, inside in rows]) for p in range(len(levels))]
    shares = np.prod([kept.mean(axis=1) for kept in inside_of], axis=0)
    return _Boxes(values, np.asarray(shares, dtype=np.float64), inside_of)
