"""Second look: what follows the decision of a comparison that one side is faster.

Fresh pairs (:mod:`autotune.study.fresh_pairs`) and means (:mod:`autotune.study.tails`) may
contradict it, as they do a proof of a search.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.stats import Comparison, LookPlan
from autotune.study.budget import Budget
from autotune.study.confirmation import Blocks, Confirmation, measure_blocks
from autotune.study.events import PhaseStarted, Watcher
from autotune.study.fresh_pairs import fresh_blocks, fresh_findings, look_again
from autotune.study.objections import Finding
from autotune.study.pairs import Pairs
from autotune.study.tails import TAIL_BLOCKS, mean_findings, mean_in_doubt


@dataclass(frozen=True)
class SecondLook:
    """What follows the decision that one side is faster: fresh pairs, and its mean."""

    fresh: Comparison | None = None
    findings: tuple[Finding, ...] = ()


def second_look(
    blocks: Blocks,
    plan: LookPlan,
    proof: Confirmation,
    budget: Budget,
    watch: Watcher,
    least: float | None = None,
) -> SecondLook:
    """Fresh pairs, and more where the mean is in doubt, if a side was decided to be faster.

    ``least`` is the smallest gain that is worth naming; None: that of the plan. A setting may be
    decided to be slower by less, unless the plan is symmetric.
    """
    second = blocks.settings[0]
    decision = proof.decisions[second]
    comparison = decision.comparison
    if decision.outcome not in ("better", "worse") or plan.margin is not None or proof.cut_short:
        return SecondLook()
    faster = decision.outcome == "better"
    least = plan.min_gain if least is None else least
    if not faster and not plan.symmetric:
        least = 0.0
    again, tail = later_blocks(blocks)
    decided = blocks.pairs(second, first=comparison.n)
    count = fresh_blocks(decided, comparison.gain)
    words = "measuring fresh pairs: each run follows one of its own side"
    watch(PhaseStarted("confirm", words, again.runs(count, 1)))
    fresh = look_again(again, count, least, budget, faster)
    side = second if faster else blocks.reference
    findings = fresh_findings(side, comparison.gain, fresh, faster)
    if findings:
        return SecondLook(fresh, tuple(findings))

    def every() -> Pairs:
        pairs = decided + again.pairs(second) + tail.pairs(second)
        return pairs if faster else pairs.swapped()

    if mean_in_doubt(every()):
        pairs = 0 if fresh is None else fresh.n
        measure_blocks(tail, TAIL_BLOCKS - pairs, [second], budget, reach=True)
    return SecondLook(fresh, tuple(mean_findings(side, every())))


def later_blocks(blocks: Blocks) -> tuple[Blocks, Blocks]:
    """The blocks after a decision: fresh pairs with leads, and pairs for the mean."""
    fresh, tail = (
        Blocks(
            blocks.evaluator,
            f"{blocks.phase}:{name}",
            blocks.settings,
            blocks.seed,
            blocks.limit_s,
            blocks.reference,
            leads=name == "fresh",
            symmetric=blocks.symmetric,
        )
        for name in ("fresh", "tail")
    )
    return fresh, tail
