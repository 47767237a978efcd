"""Individuals of variable length, and the genetic operators on them.

An individual is a vector of codes; a parameter that is left out is an absent gene. The operators
make many children at once: arrays have one row per child and one column per parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.strategies.codec import Codec, Codes

Matrix = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """Mutation rates of offspring: probabilities, and the expected number of inserted genes.

    The latter is one number for all children, or one row per child.
    """

    individual: float
    gene: float
    step: float
    drop: float
    insert: float | Floats


class Operators:
    """The genetic operators for one space."""

    def __init__(self, codec: Codec) -> None:
        self._sizes = codec.sizes
        self._optional = codec.optional
        self._lowest = codec.optional.astype(np.intp)
        self._up, self._down = _neighbours(codec)
        self._has_order = np.array([bool(axis) for axis in codec.axis])

    def deal(self, count: int, lengths: tuple[int, int], rng: np.random.Generator) -> list[Codes]:
        """Random individuals with a length drawn from the range, both ends included.

        Parameters are dealt like cards, and a used pack is reshuffled. So all of them occur once
        there are as many genes as parameters.
        """
        optional = np.flatnonzero(self._optional)
        low, high = (min(length or len(optional), len(optional)) for length in lengths)
        pack: list[int] = []
        dealt = []
        for _ in range(count):
            length = int(rng.integers(low, max(low, high) + 1))
            if len(pack) < length:
                # The rest of the pack is dealt first, then cards of a pack without these: none
                # occurs twice.
                rest = [int(p) for p in rng.permutation(optional) if int(p) not in pack]
                hand, pack = pack + rest[: length - len(pack)], rest[length - len(pack) :]
            else:
                hand, pack = pack[:length], pack[length:]
            dealt.append(self._individual(hand, rng))
        return dealt

    def balance(self, length: int, rng: np.random.Generator) -> list[Codes]:
        """Individuals of this length in which each level of each parameter occurs once.

        The last ones may be shorter. A mandatory parameter has a level in each.
        """
        left = {
            place: rng.permutation(np.arange(low, size)).tolist()
            for place, (low, size) in enumerate(zip(self._lowest, self._sizes, strict=True))
            if self._optional[place] and size > 1
        }
        dealt = []
        while left:
            codes = self._levels((1, len(self._sizes)), rng)[0]
            codes[self._optional] = 0
            for place in rng.permutation(list(left))[:length].tolist():
                codes[place] = left[place].pop()
            left = {place: levels for place, levels in left.items() if levels}
            dealt.append(tuple(codes.tolist()))
        return dealt

    def neighbours(self, codes: Codes) -> Matrix:
        """All individuals that differ by one choice in one parameter, one per row."""
        places = np.repeat(np.arange(len(self._sizes)), self._sizes)
        choices = np.concatenate([np.arange(size) for size in self._sizes])
        rows = np.tile(np.array(codes, dtype=np.intp), (len(places), 1))
        rows[np.arange(len(places)), places] = choices
        return np.asarray(rows[choices != np.array(codes)[places]], dtype=np.intp)

    def cross(
        self, a: Codes | Matrix, b: Codes | Matrix, count: int, rng: np.random.Generator
    ) -> Matrix:
        """Children of two parents, with lengths between those of the parents.

        Parents are common to all children, or given in one row per child. A gene of both parents is
        inherited with either value. The remaining places get genes of one parent.
        """
        shape = (count, len(self._sizes))
        first, second = np.broadcast_to(np.array(a), shape), np.broadcast_to(np.array(b), shape)
        children = np.where(rng.random(shape) < 0.5, first, second)
        single = (first == 0) != (second == 0)
        single &= self._optional
        common = ((first > 0) & (second > 0) & self._optional).sum(axis=1)
        lengths = np.sort([((p > 0) & self._optional).sum(axis=1) for p in (first, second)], axis=0)
        gene_counts = rng.integers(lengths[0], lengths[1] + 1) - common
        order = np.where(single, rng.random(shape), 2.0).argsort(axis=1).argsort(axis=1)
        genes = np.where(order < gene_counts[:, None], np.maximum(first, second), 0)
        return np.asarray(np.where(single, genes, children), dtype=np.intp)

    def mutate(self, children: Matrix, rates: Rates, rng: np.random.Generator) -> Matrix:
        """Change, remove and insert genes of the children selected for mutation."""
        shape = children.shape
        mutants = rng.random((shape[0], 1)) < rates.individual
        present = (children > 0) | ~self._optional
        changes = present & (rng.random(shape) < rates.gene)
        steps = changes & self._has_order & (rng.random(shape) < rates.step)
        absent = np.maximum((~present).sum(axis=1, keepdims=True), 1)
        inserts = ~present & (rng.random(shape) < rates.insert / absent)
        drops = present & self._optional & (rng.random(shape) < rates.drop)
        result = np.where(changes | inserts, self._levels(shape, rng), children)
        result = np.where(steps, self._neighbour(children, rng), result)
        result = np.where(drops, 0, result)
        return np.asarray(np.where(mutants, result, children), dtype=np.intp)

    def _individual(self, hand: list[int], rng: np.random.Generator) -> Codes:
        codes = self._levels((1, len(self._sizes)), rng)[0]
        absent = self._optional.copy()
        absent[hand] = False
        codes[absent] = 0
        return tuple(codes.tolist())

    def _levels(self, shape: tuple[int, ...], rng: np.random.Generator) -> Matrix:
        """Codes drawn uniformly from the levels, without unset."""
        span = np.maximum(self._sizes - self._lowest, 1)
        codes = (rng.random(shape) * span).astype(np.intp) + self._lowest
        return np.asarray(np.minimum(codes, self._sizes - 1), dtype=np.intp)

    def _neighbour(self, children: Matrix, rng: np.random.Generator) -> Matrix:
        columns = np.arange(len(self._sizes))
        up = rng.random(children.shape) < 0.5
        return np.where(up, self._up[columns, children], self._down[columns, children])


def _neighbours(codec: Codec) -> tuple[Matrix, Matrix]:
    """The codes above and below each code on its axis; itself at the ends and off the axis."""
    widest = int(codec.sizes.max(initial=1))
    up = np.tile(np.arange(widest), (len(codec.sizes), 1))
    down = up.copy()
    for row, axis in enumerate(codec.axis):
        up[row, list(axis[:-1])] = axis[1:]
        down[row, list(axis[1:])] = axis[:-1]
    return up.astype(np.intp), down.astype(np.intp)
