"""Resolution and power: the gain that a number of blocks can show, and the use of further blocks.

``autotune noise`` uses the gain that this machine can resolve, and the time needed.
:func:`decision_power` estimates what more blocks would decide if they are like the measured ones.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.stats.exact import Values, crossing, root, sign_walk_ranks
from autotune.stats.sequential import LookPlan
from autotune.stats.uncertainty import mad_spread


@dataclass(frozen=True)
class Resolvable:
    """A gain of ``gain`` is found by this look with the requested power."""

    blocks: int
    runs: int
    seconds: float
    gain: float


def resolution_table(
    ratios: Values,
    run_seconds: float,
    plan: LookPlan,
    *,
    power: float = 0.8,
    coarseness: float = 0.0,
) -> list[Resolvable]:
    """Smallest gain found with probability ``power`` at each look of ``plan`` that can find one.

    ``ratios``: runs of the default against itself, T / T_default, in run order
    (:class:`autotune.stats.blocks.DefaultLevel`), 3 or more. ``run_seconds``: wall time of one run.
    ``coarseness``: step of the metric as a share of the run time.

    The table is computed for the sign interval. A gain is found if a block shows it with a certain
    chance p (exact, by the walk of the plan), so it must be as large as the p-quantile of the noise
    of a block. The computation assumes that the setting does not change the noise. Raises
    ``ValueError`` for fewer than 3 ratios.
    """
    from scipy import special

    if len(ratios) < 3:
        raise ValueError("the noise of the default needs at least 3 of its runs")
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    # A block holds two neighbouring runs; both orders are equally likely, hence both signs.
    steps = np.diff(logs)
    noise = np.concatenate([steps, -steps])
    ranks = sign_walk_ranks(plan.looks, plan.tail, plan.spending)
    rows = []
    for i, blocks in enumerate(plan.looks):
        chance = _required_chance(plan, ranks, i, power)
        if chance is None:
            continue
        # A few runs say little about the tails, so the wider of the empirical and normal quantile
        # is used.
        empirical = float(np.quantile(noise, chance))
        normal = float(special.ndtri(chance)) * mad_spread(noise)
        gain = float(np.expm1(max(empirical, normal) + np.log1p(coarseness)))
        runs = blocks * (1 + plan.finalists)
        rows.append(Resolvable(blocks, runs, runs * run_seconds, max(gain, plan.min_gain)))
    return rows


def _required_chance(
    plan: LookPlan, ranks: tuple[int, ...], upto: int, power: float
) -> float | None:
    """Chance per block with which the looks up to ``upto`` find a gain; None if they never do."""
    looks = plan.looks[: upto + 1]
    win_ranks = [r if n >= plan.win_from else 0 for n, r in zip(looks, ranks, strict=False)]
    if win_ranks[-1] == 0:
        return None

    def excess(chance: float) -> float:
        return float(crossing(looks, win_ranks, 1 - chance).sum()) - power

    return root(excess, 0.5, 1.0)


POWER = 0.8
_DRAWS = 200
_MAX_UNDECIDED_DRAWS = round(_DRAWS * (1 - POWER))
"""Largest number of simulations without a decision that leaves a chance of POWER."""
_MOST = 1000
"""Largest number of pairs that is proposed."""


@dataclass(frozen=True)
class PowerEstimate:
    """The chance that a plan comes to a decision, and the number of blocks for it.

    ``chance`` is 0 to 1. ``blocks`` suffice in four of five deciding simulations.
    """

    chance: float
    blocks: int


def decision_power(
    plan: LookPlan, logs: Sequence[float], *, keep_blocks: bool = False
) -> PowerEstimate:
    """Simulate ``plan`` many times on blocks drawn from the measured ones, with replacement.

    ``logs``: log(T_default / T) of each measured block, at least one. ``keep_blocks``: the measured
    blocks are the plan's own first blocks, and only the others are drawn. The result is an
    estimate: it cannot include noise not measured yet.
    """
    decision_blocks = [blocks for blocks in _decisions(plan, logs, keep_blocks) if blocks]
    if not decision_blocks:
        return PowerEstimate(0.0, plan.looks[-1])
    return PowerEstimate(
        len(decision_blocks) / _DRAWS, int(np.quantile(decision_blocks, POWER, method="higher"))
    )


def _decisions(plan: LookPlan, logs: Sequence[float], keep_blocks: bool) -> Iterator[int]:
    """For each simulation the number of blocks at its decision, or 0 without a decision."""
    rng = np.random.default_rng(0)  # The same answer every time.
    log_ratios = np.asarray(logs, dtype=np.float64)
    last = plan.looks[-1]
    first = log_ratios[:last] if keep_blocks else log_ratios[:0]
    for _ in range(_DRAWS):
        draws = rng.choice(log_ratios, last - first.size)
        blocks = np.concatenate([first, draws])
        decision = plan.decide(np.ones(last), np.exp(-blocks), resolution=0.0)
        yield decision.comparison.n if decision.stop and decision.outcome != "undecided" else 0


def required_pairs(logs: Sequence[float], min_gain: float) -> int | None:
    """Pairs of a new comparison with one look that decides with 80 % chance; None above 1000."""
    for pairs in itertools.takewhile(lambda n: n <= _MOST, _numbers()):
        if _decides(LookPlan.single_look(pairs, min_gain=min_gain), logs):
            return pairs
    return None


def _decides(plan: LookPlan, logs: Sequence[float]) -> bool:
    """True if the chance of a decision is at least :data:`POWER`; ends when this is certain."""
    undecided_draws = (blocks for blocks in _decisions(plan, logs, False) if not blocks)
    return next(itertools.islice(undecided_draws, _MAX_UNDECIDED_DRAWS, None), None) is None


def scatter(logs: Sequence[float]) -> float:
    """Scatter of the log ratios between blocks: half of the blocks lie within 0.67 of it."""
    middle = statistics.median(logs)
    return float(np.expm1(1.4826 * statistics.median(abs(value - middle) for value in logs)))


def _numbers() -> itertools.accumulate[int]:
    return itertools.accumulate(itertools.repeat(12), lambda n, _: n + max(n // 4, 4))
