"""Pairs: the figures of two settings, block by block."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from autotune.study.run_history import HistoryEntry

MISSED_SHARE = 0.85
"""Share of slower blocks from which a parameter matters: 7 of 8, by chance in 3.5 % of cases."""


@dataclass
class Pairs:
    """Seconds of two settings block by block; all lists have the same length.

    ``censored`` marks candidates for which only a lower bound is known.
    """

    reference: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    clock: bool = False
    """Whether the figures are wall times and not the program's own figure."""

    def __add__(self, other: Pairs) -> Pairs:
        """The pairs of both, these first."""
        return Pairs(
            self.reference + other.reference,
            self.candidate + other.candidate,
            self.censored + other.censored,
            self.clock or other.clock,
        )

    def swapped(self) -> Pairs:
        """The pairs seen from the other setting; a censored one keeps its lower bound."""
        return Pairs(self.candidate, self.reference, self.censored, self.clock)

    def head(self, count: int) -> Pairs:
        """The first ``count`` pairs."""
        return Pairs(
            self.reference[:count], self.candidate[:count], self.censored[:count], self.clock
        )

    @property
    def ratios(self) -> list[float]:
        """The ratio candidate / reference of each block; infinite for a censored candidate."""
        return [
            math.inf if cut else c / r
            for r, c, cut in zip(self.reference, self.candidate, self.censored, strict=True)
        ]

    def median_ratio(self) -> float:
        """Median over the blocks; infinite if there are none."""
        return statistics.median(self.ratios) if self.ratios else math.inf

    def slower_share(self) -> float:
        """Share of the blocks in which the candidate took longer."""
        return sum(r > 1 for r in self.ratios) / len(self.ratios) if self.ratios else 1.0


def is_missed(without: Pairs, min_gain: float) -> bool:
    """Whether a setting is slower than its pair partner, by enough and in nearly all blocks."""
    worse = without.median_ratio() > 1 + min_gain / 2
    return worse and without.slower_share() >= MISSED_SHARE


def candidate_seconds(candidate: HistoryEntry, reference: HistoryEntry) -> float:
    """The candidate's seconds, or a certain lower bound of them."""
    if candidate.record.valid:
        return candidate.record.value_s
    if candidate.censored:
        outside = reference.record.wall_s - reference.record.value_s
        return max(candidate.record.wall_s - outside, reference.record.value_s)
    return reference.record.value_s
