"""Sequential tests: looks at fixed numbers of blocks, and the error budget of a study.

Alpha is split over looks and finalists. The interval shown at a look is a repeated confidence
interval: all of them together cover the true gain with the promised probability. So a study stays
valid if it stops early, continues later or is cut off by a budget. A decision depends on the blocks
up to the last complete look, never on later blocks.

The error budget of a study is one alpha for its whole life, split over rounds. A study that is
extended proves again; each proof is a round. Round k may spend three quarters of what earlier
rounds left, so any number of rounds never spends more than alpha. Most studies have one round, so
the first gets most: with 3.4 % of 5 % it has the order statistics that the whole 5 % would give to
one or two finalists.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from autotune.errors import UsageError
from autotune.stats.comparison import MIN_GAIN, Comparison, Method, judge
from autotune.stats.exact import (
    Flags,
    Spending,
    Values,
    crossing,
    root,
    sign_rank,
    sign_walk_ranks,
    wilcoxon_tail,
    wilcoxon_walk_ranks,
)
from autotune.stats.log_ratios import LogRatios, log_ratios

Outcome = Literal["continue", "better", "worse", "equivalent", "futile", "undecided", "not slower"]

LOOKS = (8, 12, 18, 27, 40)
_DESIGN_POWER = 0.8


@dataclass(frozen=True)
class Decision:
    """The decision at a look; "continue" means to run on to ``next_look`` blocks.

    Every other outcome is final. "futile": a win is no longer likely. "undecided": the last look is
    done. "not slower" (plans with a margin): not slower by more than the margin, perhaps faster.
    """

    outcome: Outcome
    why: str
    comparison: Comparison
    next_look: int | None

    @property
    def stop(self) -> bool:
        """True if the decision is final."""
        return self.outcome != "continue"


@dataclass(frozen=True)
class LookPlan:
    """The plan for comparing finalists with the default; fixed before the first block is run.

    ``alpha`` is for the whole study: both sides, all looks, all ``finalists`` (Bonferroni). A win
    is declared from ``win_from`` blocks on. ``futility``: stop when the chance of a win, under a
    gain that this plan finds with 80 % probability, is below this number (0: never). This stop can
    only lose wins, not create them.

    With a ``margin`` (0.02: 2 %) the plan tests non-inferiority. The looks go on until the lower
    end of the interval of T_default / T - 1 lies above -margin ("not slower"), its upper end lies
    below -margin ("worse"), or the last look is done. Each of the two is false with a probability
    of at most ``tail``. ``decide_at``: nothing is decided before this look, and the blocks always
    end there. It is for a caller that decides over several comparisons together; a later look is as
    valid as the first.

    ``symmetric``: neither side is the present choice, so a loss is as much an answer as a win, and
    both have the same rules. The looks go on even if a win is ruled out or unlikely, until one side
    is better by ``min_gain``, there is no relevant difference, or the last look is done.

    Raises ``UsageError`` for an invalid plan.
    """

    looks: tuple[int, ...] = LOOKS
    alpha: float = 0.05
    finalists: int = 1
    min_gain: float = MIN_GAIN
    method: Method = "sign"
    spending: Spending = "pocock"
    win_from: int = 12
    futility: float = 0.1
    margin: float | None = None
    decide_at: int | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        if not self.looks or self.looks[0] < 1 or list(self.looks) != sorted(set(self.looks)):
            raise UsageError(
                f"looks {self.looks}: expected rising numbers of blocks, from 1 up",
                code="proof.range",
            )
        if not 0 < self.alpha < 1:
            raise UsageError(
                f"alpha {self.alpha}: expected a number between 0 and 1, such as 0.05",
                code="proof.range",
            )
        if self.finalists < 1:
            raise UsageError(f"finalists {self.finalists}: expected 1 or more", code="proof.range")
        if not 0 <= self.min_gain < 1:
            raise UsageError(
                f"min-gain {self.min_gain}: expected 0 or more, such as 0.02 for 2 %",
                code="proof.range",
            )
        if self.margin is not None and not 0 < self.margin < 1:
            raise UsageError(
                f"margin {self.margin}: expected more than 0, such as 0.02 for 2 %",
                code="proof.range",
            )
        if self.decide_at is not None and (self.margin is None or self.decide_at not in self.looks):
            raise UsageError(
                f"decide-at {self.decide_at}: expected a margin and one of the looks",
                code="proof.range",
            )

    @classmethod
    def single_look(
        cls, blocks: int = 12, *, finalists: int = 1, min_gain: float = MIN_GAIN
    ) -> LookPlan:
        """A plan with one look after a fixed number of blocks."""
        return cls(looks=(blocks,), finalists=finalists, min_gain=min_gain, win_from=blocks)

    @property
    def tail(self) -> float:
        """Share of alpha for one side of one finalist."""
        return self.alpha / self.finalists / 2

    @property
    def ranks(self) -> tuple[int, ...]:
        """The order statistic that ends the interval at each look (0: no interval yet)."""
        walk = sign_walk_ranks if self.method == "sign" else wilcoxon_walk_ranks
        return walk(self.looks, self.tail, self.spending)

    @property
    def first_interval(self) -> int:
        """Blocks of the first look with an interval; of the last look, if none has one."""
        look_ranks = zip(self.looks, self.ranks, strict=True)
        return next((look for look, rank in look_ranks if rank > 0), self.looks[-1])

    @property
    def level(self) -> float:
        """Exact coverage, for one finalist, of its intervals at all looks together."""
        return _level(self.looks, self.ranks, self.method)

    def decide(
        self,
        default: Values,
        candidate: Values,
        *,
        censored_default: Flags | None = None,
        censored_candidate: Flags | None = None,
        resolution: float | None = None,
    ) -> Decision:
        """The decision on one finalist after the blocks so far.

        The times are in seconds, one of each setting per block, in order. The first look with a
        final outcome counts, whatever came later. Raises what
        :func:`autotune.stats.comparison.compare` raises.
        """
        ratios = log_ratios(
            default,
            candidate,
            censored_default=censored_default,
            censored_candidate=censored_candidate,
            resolution=resolution,
        )
        decision = None
        for look, rank in zip(self.looks, self.ranks, strict=True):
            if look > ratios.n:
                break
            decision = self._at(look, rank, ratios.first(look))
            if decision.stop:
                return decision
        if decision is None:
            why = f"the first look is at {self.looks[0]} blocks"
            return Decision("continue", why, self._compare(ratios, 0), self.looks[0])
        return decision

    def _compare(self, ratios: LogRatios, rank: int) -> Comparison:
        return judge(
            ratios,
            rank,
            level=self.level,
            alpha=self.alpha,
            min_gain=self.min_gain,
            method=self.method,
        )

    def _at(self, look: int, rank: int, ratios: LogRatios) -> Decision:
        comparison = self._compare(ratios, rank)
        if self.margin is not None:
            return self._against_margin(look, comparison, self.margin)
        if self.symmetric:
            return self._between_equals(look, comparison)
        if comparison.verdict == "better" and look >= self.win_from:
            return Decision("better", "the interval lies above 0", comparison, None)
        if comparison.verdict == "worse":
            return Decision("worse", "the interval lies below 0", comparison, None)
        if comparison.verdict == "equivalent":
            return Decision("equivalent", "no relevant difference", comparison, None)
        if comparison.interval and comparison.hi < self.min_gain:
            why = f"a gain of {100 * self.min_gain:g} % is ruled out"
            return Decision("futile", why, comparison, None)
        if look == self.looks[-1]:
            return Decision("undecided", f"not decided after {look} blocks", comparison, None)
        if comparison.verdict != "better" and self.win_chance(ratios) < self.futility:
            return Decision("futile", "proof unlikely", comparison, None)
        return Decision("continue", "not decided yet", comparison, self._after(look))

    def _between_equals(self, look: int, comparison: Comparison) -> Decision:
        if comparison.verdict == "better" and look >= self.win_from:
            return Decision("better", "the interval lies above 0", comparison, None)
        loss = 1 / (1 + self.min_gain) - 1  # The same gain, seen from the other side.
        if comparison.verdict == "worse" and comparison.gain <= loss and look >= self.win_from:
            return Decision("worse", "the interval lies below 0", comparison, None)
        if comparison.interval and loss < comparison.lo and comparison.hi < self.min_gain:
            return Decision("equivalent", "no relevant difference", comparison, None)
        if look == self.looks[-1]:
            return Decision("undecided", f"not decided after {look} blocks", comparison, None)
        return Decision("continue", "not decided yet", comparison, self._after(look))

    def _against_margin(self, look: int, comparison: Comparison, margin: float) -> Decision:
        last = self.looks[-1] if self.decide_at is None else self.decide_at
        if look < (self.decide_at or 0):
            why = f"to be decided at {last} blocks"
            return Decision("continue", why, comparison, self._after(look))
        if comparison.interval and comparison.lo > -margin:
            return Decision(
                "not slower", f"less than {margin:.1%} slower, if at all", comparison, None
            )
        if comparison.interval and comparison.hi < -margin:
            return Decision("worse", f"more than {margin:.1%} slower", comparison, None)
        if look == last:
            return Decision("undecided", f"not decided after {look} blocks", comparison, None)
        return Decision("continue", "not decided yet", comparison, self._after(look))

    def _after(self, look: int) -> int:
        return self.looks[self.looks.index(look) + 1]

    def win_chance(self, ratios: LogRatios) -> float:
        """Chance (0..1, an upper bound) that the last look will show a win.

        A win needs few blocks at or below 0 and half of the blocks at ``min_gain``. Future blocks
        are assumed to have a gain that the plan finds with 80 % probability, and to reach
        ``min_gain`` in half of the cases. If the remaining blocks cannot produce a win, the chance
        is exactly 0.
        """
        from scipy import special

        last = self.looks[-1]
        left = last - ratios.n
        rank = sign_rank(last, self.tail) if self.method == "wilcoxon" else self.ranks[-1]
        spare = rank - 1 - int(np.sum(ratios.low <= 0))
        clear = special.bdtr(spare, left, _design_chance(last, rank)) if spare >= 0 else 0.0
        gain_blocks = int(np.sum(ratios.value_low >= np.log1p(self.min_gain)))
        missing = math.ceil(last / 2) - gain_blocks
        large = special.bdtrc(missing - 1, left, 0.5) if missing > 0 else 1.0
        return float(min(clear, large))


def looks_up_to(pairs: int) -> tuple[int, ...]:
    """The study's looks below ``pairs`` (each 1.5 times the one before), and ``pairs``."""
    more = (round(LOOKS[-1] * 1.5**n) for n in itertools.count(1))
    steps = itertools.takewhile(lambda look: look < pairs, itertools.chain(LOOKS, more))
    return (*steps, pairs)


def settle(decisions: Sequence[Decision]) -> list[Decision]:
    """The finalists' decisions; open finalists that trail a winner are stopped, too."""
    winner_index = winner(decisions)
    if winner_index is None:
        return list(decisions)
    mark = decisions[winner_index].comparison.gain
    return [
        d
        if d.stop or d.comparison.gain > mark
        else replace(d, outcome="futile", why="another finalist won", next_look=None)
        for d in decisions
    ]


def winner(decisions: Sequence[Decision]) -> int | None:
    """Index of the better finalist with the largest gain; None if no finalist is better."""
    better = [i for i, d in enumerate(decisions) if d.outcome == "better"]
    return max(better, key=lambda i: decisions[i].comparison.gain, default=None)


@lru_cache(maxsize=256)
def _level(looks: tuple[int, ...], ranks: tuple[int, ...], method: Method) -> float:
    if method == "sign":
        return 1 - 2 * float(crossing(looks, ranks).sum())
    return 1 - 2 * sum(wilcoxon_tail(n, k) for n, k in zip(looks, ranks, strict=True))


@lru_cache(maxsize=256)
def _design_chance(last: int, rank: int) -> float:
    """Chance of a block at or below 0 under the gain that the last look finds with 80 % chance."""
    from scipy import special

    if rank == 0:
        return 0.0

    def excess(chance: float) -> float:
        return float(special.bdtr(rank - 1, last, chance)) - _DESIGN_POWER

    return root(excess, 0.0, 1.0)


PROOF_SHARE = 0.9
"""Share of a round's alpha for its finalists; the rest is for the rates of slow launches."""
ROUND_SHARE = 0.75
"""Share of the remaining alpha for the next round: 75 %, 18.8 %, 4.7 %, ... of alpha."""


@dataclass(frozen=True)
class ErrorBudget:
    """The error budget; ``alpha`` is the chance (0..1) of a false statement in a study's life.

    Both sides count. Raises UsageError for an alpha that is not between 0 and 1.
    """

    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(
                f"alpha {self.alpha}: expected a number between 0 and 1, such as 0.05",
                code="proof.range",
            )

    def round(self, number: int) -> float:
        """The alpha of round ``number`` (1, 2, ...); raises ValueError for a number below 1."""
        if number < 1:
            raise ValueError(f"round {number}: rounds are counted from 1")
        return float(self.alpha * ROUND_SHARE * (1 - ROUND_SHARE) ** (number - 1))

    def proof(self, number: int) -> float:
        """The part of the round's alpha for the finalists against the default."""
        return PROOF_SHARE * self.round(number)

    def slow_launches(self, number: int) -> float:
        """The part of the round's alpha for the rates of slow launches."""
        return (1 - PROOF_SHARE) * self.round(number)
