"""The steps of a traced program: what its ranks repeat, and how much they compute in it.

A *round* of a rank ends when it waits for other processes after it has sent something, or at a
collective. Rounds that send the same, to the same ranks, are of one kind. The rounds of the kind
with the most computation, apart from each kind's longest round, are the rank's *steps*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.trace.checks import EntryChecks
from runner.trace.compute import communication_ns
from runner.trace.counts import RankCounts, RoundSums


@dataclass(frozen=True)
class Steps:
    """How a run goes on.

    ``steps``: steps of a rank, a mean over ranks. ``rounds``: rounds of the rank with the most: how
    often a rank waits for others, one time after the other. ``compute_s``: seconds outside of MPI
    of each rank in its steps and in rounds that come about as often, shape (ranks,): start and end
    of the program are no part of it. ``variation``: standard deviation of the computation of a step
    over its mean, a mean over ranks.
    """

    steps: float
    rounds: int
    compute_s: tuple[float, ...]
    variation: float

    @property
    def step_s(self) -> float:
        """Seconds of computation of a rank in one step, a mean over ranks."""
        return sum(self.compute_s) / len(self.compute_s) / self.steps

    @property
    def depth(self) -> float:
        """How often a rank waits for others in one step."""
        return self.rounds / self.steps

    @property
    def imbalance(self) -> float:
        """The most computation of a rank over the mean of ranks; 1 without any."""
        total = sum(self.compute_s)
        return max(self.compute_s) * len(self.compute_s) / total if total else 1.0

    def to_json(self) -> dict[str, Any]:
        """The steps as JSON types."""
        return {
            "steps": self.steps,
            "rounds": self.rounds,
            "compute_s": list(self.compute_s),
            "variation": self.variation,
        }


def steps_of(ranks: Sequence[RankCounts]) -> Steps | None:
    """The steps of a run from the counts of all its ranks (at least one); None if no rank had a
    round, or rounds were not counted."""
    steps = [_main(rank) for rank in ranks if rank.rounds]
    if not steps:
        return None
    return Steps(
        steps=sum(kind.rounds for kind in steps) / len(steps),
        rounds=max(sum(kind.rounds for kind in rank.rounds) for rank in ranks),
        compute_s=tuple(_compute_ns(rank) / 1e9 for rank in ranks),
        variation=sum(map(_variation, steps)) / len(steps),
    )


def _main(rank: RankCounts) -> RoundSums:
    return max(rank.rounds, key=lambda kind: (kind.ns - kind.longest, kind.rounds))


def _compute_ns(rank: RankCounts) -> float:
    if not rank.rounds:  # It only receives.
        return rank.wall_ns - communication_ns(rank)
    least = max(_main(rank).rounds / 2, 2)
    return sum(_mean(kind) * kind.rounds for kind in rank.rounds if kind.rounds >= least)


def _mean(kind: RoundSums) -> float:
    """Nanoseconds outside of MPI in a round. The longest is left out: the first one begins with the
    start of the program."""
    return (kind.ns - kind.longest) / (kind.rounds - 1) if kind.rounds > 1 else 0.0


def _variation(kind: RoundSums) -> float:
    mean = _mean(kind)
    if not mean:
        return 0.0
    squares = (kind.squares - float(kind.longest) ** 2) / (kind.rounds - 1)
    return math.sqrt(max(squares - mean**2, 0.0)) / mean


_KEYS = ("steps", "rounds", "compute_s", "variation")


def steps_from_json(data: Any, ranks: int, check: EntryChecks) -> Steps:
    """The steps in a features file of ``ranks`` ranks; raises FeaturesError with file and key if
    they are invalid."""
    raw = check.mapping("steps", data)
    check.keys("steps", raw, _KEYS)
    compute = check.elements("steps.compute_s", raw["compute_s"])
    if len(compute) != ranks:
        check.fail("steps.compute_s", compute, f"one number for each of {ranks} ranks")
    steps = Steps(
        steps=check.number("steps.steps", raw["steps"]),
        rounds=check.natural("steps.rounds", raw["rounds"]),
        compute_s=tuple(
            check.number(f"steps.compute_s[{at}]", one) for at, one in enumerate(compute)
        ),
        variation=check.number("steps.variation", raw["variation"]),
    )
    if not 1 <= steps.steps <= steps.rounds:
        check.fail("steps.steps", steps.steps, f"a number from 1 to {steps.rounds}, the rounds")
    return steps
