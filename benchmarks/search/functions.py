"""Functions with a known truth, on which strategies search.

``additive`` is one function of ten parameters. ``mpi`` are landscapes of 25 parameters, three of
which matter, with 3 % noise, failures, and levels that are many times slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autotune.space import Parameter, Setting, Space

SIZES = (7, 5, 10, 8, 6, 2, 4, 4, 4, 5)


@dataclass(frozen=True)
class Landscape:
    """A space, the true ratio T / T_default of a setting (infinite: fails), the best ratio."""

    space: Space
    ratio: Callable[[Setting], float]
    best: float
    noise: float

    def measure(self, setting: Setting, rng: np.random.Generator) -> float:
        """One noisy run."""
        return self.ratio(setting) * math.exp(self.noise * rng.standard_normal())


def additive(seed: int = 12) -> Landscape:
    """Ten categorical parameters (10 752 000 settings): main effects and one interaction.

    The unset level has an effect like any other. The constant part (4.7) and the function (12, of
    the first 14) were chosen so that random search comes about as close to the optimum as published
    for such a function (16.5, 13.0, 11.1 %). No other strategy was looked at for this choice.
    """
    rng = np.random.default_rng([2026, seed])
    weights = rng.uniform(0.2, 1.0, len(SIZES))
    effects = [w * rng.uniform(0, 1, n) for w, n in zip(weights, SIZES, strict=True)]
    pair = 0.6 * rng.uniform(0, 1, (SIZES[2], SIZES[3]))
    parameters = tuple(
        Parameter(f"p{i}", tuple(f"level{k}" for k in range(1, n))) for i, n in enumerate(SIZES)
    )
    space = Space("additive", parameters)
    index = [{choice: k for k, choice in enumerate(p.choices)} for p in parameters]

    def seconds(setting: Setting) -> float:
        codes = [index[i][setting.get(p.name)] for i, p in enumerate(parameters)]
        alone = sum(float(e[c]) for e, c in zip(effects, codes, strict=True))
        return 4.7 + alone + float(pair[codes[2], codes[3]])

    default = seconds(Setting())
    joint = (effects[2][:, None] + effects[3] + pair).min()
    best = 4.7 + joint + sum(e.min() for i, e in enumerate(effects) if i not in (2, 3))
    return Landscape(space, lambda s: seconds(s) / default, best / default, 0.0)


def mpi(seed: int, *, null: bool = False) -> Landscape:
    """25 parameters of flags, sizes and words; almost every setting is slower than the default.

    Three parameters matter (a flag, a size, an algorithm; the best values of the last two
    interact). Some levels cost 10 to 60 %, some a factor of 2 to 8, some fail, and so do two large
    sizes together.
    """
    rng = np.random.default_rng([99, seed])
    counts = rng.permutation([2] * 8 + [4] * 4 + [8] * 9 + [6] * 4).tolist()
    effects = [_idle_effects(n, rng) for n in counts]
    spots = [(int(p), int(rng.integers(1, counts[p]))) for p in rng.integers(25, size=12)]
    for number, (p, level) in enumerate(spots[:9]):
        effects[p][level] += rng.uniform(0.1, 0.6) if number < 6 else math.log(rng.uniform(2, 8))
    sizes = [int(p) for p in rng.permutation([i for i, n in enumerate(counts) if n == 8])]
    flag = int(rng.choice([i for i, n in enumerate(counts) if n == 2]))
    word = int(rng.choice([i for i, n in enumerate(counts) if n == 6]))
    size, good_size, good_word = sizes[0], int(rng.integers(3, 8)), int(rng.integers(1, 6))
    bonus = 0.0
    if not null:
        bonus = 0.03
        effects[flag] = np.array([0, -0.05])
        effects[size][1:] = -0.12 + 0.03 * np.abs(np.arange(1, 8) - good_size)
        effects[word] = np.where(np.arange(6) == good_word, -0.10, 0.05 * (np.arange(6) > 0))
    fatal = {spot for spot in spots[9:] if spot[0] not in (flag, size, word)}
    space = Space("mpi", tuple(_parameter(i, n) for i, n in enumerate(counts)))
    index = [{choice: k for k, choice in enumerate(p.choices)} for p in space.parameters]

    def ratio(setting: Setting) -> float:
        codes = [index[i][setting.get(p.name)] for i, p in enumerate(space.parameters)]
        if fatal.intersection(enumerate(codes)) or min(codes[sizes[1]], codes[sizes[2]]) >= 6:
            return math.inf
        log = sum(float(e[c]) for e, c in zip(effects, codes, strict=True))
        return math.exp(log - bonus * (codes[size] == good_size and codes[word] == good_word))

    best = math.exp(sum(float(e.min()) for e in effects) - bonus)
    return Landscape(space, ratio, best, 0.03)


def _idle_effects(count: int, rng: np.random.Generator) -> np.ndarray:
    effects = np.zeros(count)
    if count == 8:
        slope = rng.choice([0, 0.002, 0.01])
        effects[1:] = slope * np.abs(np.arange(1, 8) - rng.integers(1, 8))
    else:
        effects[1:] = rng.choice([0, 0, 0.01, 0.03], count - 1)
    return effects


def _parameter(place: int, count: int) -> Parameter:
    if count == 6:
        return Parameter(f"p{place:02d}", tuple(f"word{k}" for k in range(1, count)))
    return Parameter(f"p{place:02d}", tuple(2**k for k in range(1, count)))
