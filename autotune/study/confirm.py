"""The proof: finalists against the default on fresh interleaved blocks, looked at as planned."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune.space import Setting
from autotune.stats import Decision, Plan, drifted, settle
from autotune.study.blocks import Blocks
from autotune.study.budget import Budget, BudgetSpent
from autotune.study.events import PhaseStarted, Watcher, silent

DRIFT_SHARE = 0.5
"""With more than this share of new blocks at another speed there is no usual speed to repeat at."""


@dataclass
class Confirmation:
    """Decisions per finalist, in the order given; ``cut_short`` where a budget ended the looks."""

    blocks: Blocks
    settings: list[Setting]
    decisions: dict[Setting, Decision] = field(default_factory=dict)
    cut_short: bool = False
    repeated: int = 0
    """Blocks measured again because the machine had another speed than usual."""
    unsteady: int = 0
    """Blocks at another speed that were not: it moved all the time."""

    @property
    def winners(self) -> list[Setting]:
        """Proven finalists, the greatest gain first."""
        won = [s for s in self.settings if self.decisions[s].outcome == "better"]
        return sorted(won, key=lambda s: -self.decisions[s].comparison.gain)

    @property
    def open(self) -> list[Setting]:
        """Finalists about which nothing is proven either way."""
        outcomes = ("continue", "undecided")
        return [s for s in self.settings if self.decisions[s].outcome in outcomes]


def confirm_blocks(
    blocks: Blocks, plan: Plan, budget: Budget, watch: Watcher = silent
) -> Confirmation:
    """Run blocks until every setting is decided, the last look is past, or ``budget`` is spent.

    A decided setting is not run again; the others go on against the reference.  Runs that the
    ledger already holds are not made again.
    """
    result = Confirmation(blocks, list(blocks.settings))
    live = list(blocks.settings)
    most = plan.looks[-1] * (len(live) + 1)
    watch(PhaseStarted("confirm", f"proving against {blocks.reference.key}", most))
    seen = 0
    for look in plan.looks:
        done = measure(blocks, look, live, budget, reach=seen > 0)
        whole = done == look and _repeat_drifted(result, seen, done, live, budget)
        result.cut_short = not whole
        if not whole and seen:
            break  # What the look before said stands.
        for setting in live:
            result.decisions[setting] = decide(
                plan, blocks, setting, look if whole else min(done, look - 1)
            )
        _settle(result)
        live = [s for s in live if not result.decisions[s].stop]
        if not live or result.cut_short:
            break
        seen = done
    return result


def measure(blocks: Blocks, look: int, live: list[Setting], budget: Budget, reach: bool) -> int:
    """Measure up to ``look`` blocks and return how many there are.

    With ``reach`` nothing is begun that the budget will not see to the end: blocks between two
    looks decide nothing.
    """
    there = 0
    while there < look and blocks.complete(there, live):
        there += 1
    cost = len(live) + 1
    if reach and not budget.affords((look - there) * cost, blocks.run_s):
        return there
    for number in range(there, look):
        if not blocks.complete(number, live) and not budget.affords(cost, blocks.run_s):
            return number
        try:
            blocks.ensure_block(number, live)
        except BudgetSpent:
            return number
    return look


def _repeat_drifted(
    result: Confirmation, first: int, until: int, live: list[Setting], budget: Budget
) -> bool:
    """Measure the new blocks once more in which the machine had another speed than usual.

    Judged once, when a look is complete, by the reference's runs alone: a block is never repeated
    for what a candidate took.  False where the budget does not hold the repetitions.
    """
    blocks = result.blocks
    away = [n for n in drifted(blocks.speeds(until)) if n >= first]
    if len(away) > DRIFT_SHARE * (until - first):
        result.unsteady += len(away)
        return True
    for number in away:
        cost = len(live) + 1
        if not blocks.again.complete(number, live) and not budget.affords(cost, blocks.run_s):
            return False
        try:
            blocks.again.ensure_block(number, live)
        except BudgetSpent:
            return False
        result.repeated += 1
    return True


def _settle(result: Confirmation) -> None:
    """Stop finalists that trail a winner: more blocks could not make them the answer."""
    settled = settle([result.decisions[s] for s in result.settings])
    result.decisions = dict(zip(result.settings, settled, strict=True))


def decide(plan: Plan, blocks: Blocks, setting: Setting, count: int) -> Decision:
    """What the first ``count`` blocks say of one setting against their reference."""
    pairs = blocks.pairs(setting, first=count)
    return plan.decide(
        pairs.reference,
        pairs.candidate,
        censored_candidate=pairs.censored,
        # Wall time is a clock; a program's own figure may be rounded, which is detected.
        resolution=0.0 if pairs.clock else None,
    )
