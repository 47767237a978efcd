"""A surrogate for large spaces: samples of sparse effects of levels, drawn by Gibbs sampling.

The log ratio of a setting is the sum of the effects of its levels. Few levels act: an effect is
either drawn from a wide normal distribution, or it is a small cost. The mean of these costs, their
spread and the noise are learned, too. If one level of a parameter acts, others probably do.
Neighbouring levels of a size share an effect, and so do all levels of an unordered parameter. The
prior of "spike and slab": Mitchell and Beauchamp, JASA 83 (1988), and George and McCulloch, JASA 88
(1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.strategies.codec import Codec
from autotune.strategies.levels import Floats, Levels, Matrix
from autotune.strategies.models.sweeps import Sweeps


@dataclass(frozen=True)
class Beliefs:
    """The prior, before anything is measured; all in log ratios."""

    acting: float = 2.0
    """Levels expected to act in the whole space."""
    sibling_chance: float = 0.4
    """Probability that a level acts if another level of its parameter does."""
    most: float = 0.5
    """Largest probability that a level acts."""
    slab: float = 0.12
    """Standard deviation of an effect that acts."""
    cost: float = 0.01
    cost_sd: float = 0.02
    """Mean cost of a level that does not act, and its standard deviation."""
    spread: float = 0.012
    spread_weight: float = 20.0
    """Standard deviation of these costs around their mean, and its weight in levels."""
    noise: float = 0.03
    noise_weight: float = 6.0
    """Standard deviation of one measured log ratio, and the weight of this prior in runs."""
    tail: float = 4.0
    """Degrees of freedom of Student's t for runs slower than predicted.

    A launch that was slow by chance must not count against its setting's levels.
    """
    burn: int = 40
    thin: int = 3
    samples: int = 96
    """Sweeps before the first sample, sweeps for each sample, and samples."""


class Columns:
    """The effects of one space: one for each free choice, and one for each group of choices.

    ``members`` (columns, choices) marks the choices that have the effect of a column.
    """

    def __init__(self, codec: Codec, levels: Levels, beliefs: Beliefs) -> None:
        free = np.flatnonzero(levels.free)
        groups = [group for place in range(len(codec.sizes)) for group in _groups(codec, place)]
        self.members = np.zeros((len(free) + len(groups), levels.total))
        self.members[np.arange(len(free)), free] = 1.0
        for row, (place, codes) in enumerate(groups, start=len(free)):
            self.members[row, levels.starts[place] + np.array(codes)] = 1.0
        owners = [*levels.owner[free].tolist(), *(place for place, _ in groups)]
        self.owners = np.array(owners, dtype=np.int64)
        own = np.arange(len(owners)) < len(free)
        # A mandatory choice has no reference without it, so it has no mean cost.
        has_cost = own & codec.optional[np.array(owners, dtype=np.intp)]
        single_chance = min(beliefs.most, beliefs.acting / max(len(codec.sizes), 1))
        self.sibling_odds = float(_logit(max(beliefs.sibling_chance, single_chance)))
        rivals = np.bincount(owners, minlength=len(codec.sizes))[owners] - 1
        # The odds that no column of a parameter acts exceed what their single odds imply.
        quiet = np.log1p(-max(beliefs.sibling_chance, single_chance)) - np.log1p(-single_chance)
        odds = _logit(single_chance) + rivals * quiet
        self.facts = np.stack([odds, own, has_cost], axis=1).astype(np.float64)


class SparseEffects:
    """Samples of the effects, given settings and their log ratios.

    ``codes`` has the shape (settings, parameters), ``logs`` (settings,). ``scatter`` is the noise
    of repeated runs of one setting: a variance and its degrees of freedom. ``samples`` has the
    effect of each choice, shape (samples, choices). The same ``rng`` gives the same samples.
    """

    def __init__(
        self,
        levels: Levels,
        columns: Columns,
        beliefs: Beliefs,
        codes: Matrix,
        logs: Floats,
        rng: np.random.Generator,
        scatter: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._levels = levels
        column_samples = _draw(
            columns, beliefs, levels.one_hot(codes) @ columns.members.T, logs, rng, scatter
        )
        self.samples: Floats = column_samples @ columns.members

    def mean(self, codes: Matrix) -> Floats:
        """Mean of the true log ratio of each setting, shape (settings,)."""
        effects = self.samples.mean(axis=0)
        return np.asarray(effects[self._levels.places(codes)].sum(axis=1))


def _draw(
    columns: Columns,
    beliefs: Beliefs,
    inside: Floats,
    logs: Floats,
    rng: np.random.Generator,
    scatter: tuple[float, float],
) -> Floats:
    """Samples of the columns' effects; ``inside`` (runs, columns) marks the columns of each run."""
    count, width = inside.shape
    belongs, runs = np.nonzero(inside.T)
    starts = np.searchsorted(belongs, np.arange(width + 1))
    sweeps = beliefs.burn + beliefs.thin * beliefs.samples
    has_cost = (columns.facts[:, 2] > 0) & (inside > 0).any(axis=0)
    variance, freedom = scatter
    weight = beliefs.noise_weight + freedom
    noise_variance = (beliefs.noise_weight * beliefs.noise**2 + freedom * variance) / weight
    prior = [
        beliefs.slab**2,
        columns.sibling_odds,
        beliefs.cost,
        beliefs.cost_sd**2,
        beliefs.spread**2,
    ]
    prior += [beliefs.spread_weight, noise_variance, weight, beliefs.tail]
    shapes = [(beliefs.spread_weight + has_cost.sum()) / 2, (weight + count) / 2]
    return Sweeps(
        runs=runs,
        starts=starts,
        owners=columns.owners,
        logs=logs,
        columns=columns.facts,
        prior=np.array(prior),
        burn=beliefs.burn,
        thin=beliefs.thin,
        normals=rng.standard_normal((sweeps, width + 1)),
        logistics=rng.logistic(size=(sweeps, width)),
        gammas=rng.standard_gamma((beliefs.tail + 1) / 2, (sweeps, max(count, 1))),
        totals=rng.standard_gamma(shapes, (sweeps, 2)),
    ).samples()


def _groups(codec: Codec, place: int) -> list[tuple[int, list[int]]]:
    """Groups of choices of a parameter that may share an effect."""
    first = int(codec.optional[place])
    if codec.axis[place]:
        order = [code for code in codec.axis[place] if code >= first]
        return [(place, order[i : i + 2]) for i in range(len(order) - 1)]
    codes = list(range(first, int(codec.sizes[place])))
    return [(place, codes)] if len(codes) > 1 and first else []


def _logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))
