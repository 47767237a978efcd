"""Exact distributions: binomial, hypergeometric, signed rank sum, a sign walk with repeated looks.

A *rank* ``k`` means: the k-th smallest value (of the blocks, or of their Walsh averages) is the
lower end of an interval, and the k-th largest is the upper end. ``k = 0`` means that no value is
far enough out, so the end is infinite. ``tail`` is always the probability of ONE side.

Sources: the order-statistic interval of the median and the Walsh-average interval are in Hollander,
Wolfe and Chicken, *Nonparametric Statistical Methods*, 3.2 and 3.6; alpha spending over looks is in
Lan and DeMets, *Biometrika* 70 (1983).

Only ``special`` of scipy is used: ``stats`` and ``optimize`` take half a second to import, and each
measuring command would wait for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Sequence[float] | NDArray[np.float64]
Flags = Sequence[bool] | NDArray[np.bool_]
Spending = Literal["linear", "pocock", "obrien-fleming"]

_SLACK = 1e-12  # tolerance for sums of floats that should equal a tail exactly


def middle(values: Floats) -> float:
    """Median of at least one value, also infinite; much faster than numpy's for few values."""
    ascending = np.sort(values)
    n = ascending.size
    return float(ascending[(n - 1) // 2] + ascending[n // 2]) / 2


@lru_cache(maxsize=4096)
def sign_rank(n: int, tail: float) -> int:
    """Largest rank k with P(Binomial(n, 1/2) < k) <= tail; 0 if there is none."""
    from scipy import special

    cdf = special.bdtr(np.arange(n), n, 0.5)
    return int(np.searchsorted(cdf, tail + _SLACK, side="right"))


def sign_tail(n: int, k: int) -> float:
    """P(Binomial(n, 1/2) < k): the chance that the k-th smallest of n lies above the median."""
    from scipy import special

    return float(special.bdtr(k - 1, n, 0.5)) if k > 0 else 0.0


@lru_cache(maxsize=256)
def _signed_rank_cdf(n: int) -> Floats:
    """P(W <= w) for w = 0 .. n(n+1)/2; W is the sum of the ranks of the positive signs."""
    pmf = np.ones(1)
    for rank in range(1, n + 1):
        wider = np.zeros(pmf.size + rank)
        wider[: pmf.size] = pmf
        wider[rank:] += pmf
        pmf = wider / 2
    return np.asarray(np.cumsum(pmf), dtype=np.float64)


@lru_cache(maxsize=4096)
def wilcoxon_rank(n: int, tail: float) -> int:
    """The rank of :func:`sign_rank` for the n(n+1)/2 Walsh averages of n symmetric values."""
    return int(np.searchsorted(_signed_rank_cdf(n), tail + _SLACK, side="right"))


def wilcoxon_tail(n: int, k: int) -> float:
    """P(W < k): the chance that the k-th smallest Walsh average lies above the centre."""
    return float(_signed_rank_cdf(n)[k - 1]) if k > 0 else 0.0


def spendable_tail(function: Spending, share: float, tail: float) -> float:
    """The part of ``tail`` that may be spent after a ``share`` (0..1) of the planned blocks."""
    from scipy import special

    if share >= 1:
        return tail
    if function == "linear":
        return tail * share
    if function == "pocock":
        return tail * math.log1p((math.e - 1) * share)
    return float(2 * special.ndtr(special.ndtri(tail / 2) / math.sqrt(share)))


@lru_cache(maxsize=256)
def _log_factorials(n: int) -> Floats:
    """log(k!) for k = 0 .. n."""
    logs = np.zeros(n + 1)
    np.cumsum(np.log(np.arange(1, n + 1)), out=logs[1:])
    return logs


def binomial(n: int, chance: float) -> Floats:
    """P(k of n) for k = 0 .. n."""
    from scipy import special

    counts, logs = np.arange(n + 1), _log_factorials(n)
    powers = special.xlogy(counts, chance) + special.xlog1py(n - counts, -chance)
    return np.asarray(np.exp(logs[n] - logs - logs[::-1] + powers), dtype=np.float64)


def hypergeometric(total: int, successes: int, draws: int) -> Floats:
    """P(k successes among ``draws``) for k = 0 .. draws, from ``total`` with ``successes``."""
    logs = _log_factorials(total)
    first, last = max(0, draws + successes - total), min(successes, draws)
    k = np.arange(first, last + 1)
    ways = logs[successes] - logs[k] - logs[successes - k] + logs[total - successes]
    ways -= logs[draws - k] + logs[total - successes - draws + k]
    chances = np.zeros(draws + 1)
    chances[k] = np.exp(ways - (logs[total] - logs[draws] - logs[total - draws]))
    return chances


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a monotone function between two places, to 1e-12."""
    rises = function(high) > 0
    while high - low > 1e-12:
        half = (low + high) / 2
        if (function(half) > 0) == rises:
            high = half
        else:
            low = half
    return (low + high) / 2


def crossing(looks: Sequence[int], ranks: Sequence[int], chance: float = 0.5) -> Floats:
    """P(first crossing at look j), shape (looks,), of a walk that counts blocks below a value.

    A look j is crossed if fewer than ``ranks[j]`` of the first ``looks[j]`` blocks lie below the
    value. Each block lies below with probability ``chance``, independently. Exact, by dynamic
    programming over the counts of the walks that have not crossed yet.
    """
    alive = np.ones(1)
    previous_look = 0
    first = np.zeros(len(looks))
    for j, (look, rank) in enumerate(zip(looks, ranks, strict=True)):
        alive = np.convolve(alive, binomial(look - previous_look, chance))
        previous_look = look
        first[j] = alive[:rank].sum()
        alive[:rank] = 0.0
    return first


@lru_cache(maxsize=256)
def sign_walk_ranks(looks: tuple[int, ...], tail: float, function: Spending) -> tuple[int, ...]:
    """The largest ranks whose exact probability of ever crossing stays within the spending.

    The counts are whole numbers, so a look may not spend all of its error; the rest goes to the
    next look. Ties with the true median only make a crossing rarer, so the bound holds for discrete
    run times too.
    """
    ranks: list[int] = []
    for look in looks:
        tail_limit = spendable_tail(function, look / looks[-1], tail) + _SLACK
        rank = 0
        while (
            rank < look
            and crossing(looks[: len(ranks) + 1], [*ranks, rank + 1]).sum() <= tail_limit
        ):
            rank += 1
        ranks.append(rank)
    return tuple(ranks)


@lru_cache(maxsize=256)
def wilcoxon_walk_ranks(looks: tuple[int, ...], tail: float, function: Spending) -> tuple[int, ...]:
    """The ranks of :func:`sign_walk_ranks` for Walsh averages.

    Signed rank sums of growing samples do not form a walk with independent steps. So this function
    adds the exact tails of the looks (Bonferroni), which is valid but a little wider than
    necessary.
    """
    ranks: list[int] = []
    spent_tail = 0.0
    for look in looks:
        tail_limit = spendable_tail(function, look / looks[-1], tail)
        rank = wilcoxon_rank(look, tail_limit - spent_tail)
        spent_tail += wilcoxon_tail(look, rank)
        ranks.append(rank)
    return tuple(ranks)
