"""The proof: finalists against the default on fresh interleaved blocks, looked at as planned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from autotune.space import Setting
from autotune.stats import Decision, Plan, drifted, settle
from autotune.study.blocks import Blocks, Pairs
from autotune.study.budget import Budget, BudgetSpent
from autotune.study.events import PhaseStarted, Watcher, silent
from autotune.study.ledger import Figure

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

    def judge(live: list[Setting], count: int) -> list[Setting]:
        for setting in live:
            result.decisions[setting] = decide(plan, blocks, setting, count)
        _settle(result)
        return [s for s in live if not result.decisions[s].stop]

    _look(result, plan, budget, watch, judge)
    return result


@dataclass
class FigureProof:
    """One setting against the reference by several figures of its runs, each with its decision.

    ``proof`` says how it was measured; it holds no decision of its own.
    """

    proof: Confirmation
    decisions: dict[str, Decision] = field(default_factory=dict)


def confirm_figures(
    blocks: Blocks,
    plan: Plan,
    figures: Mapping[str, Figure],
    decisive: Collection[str],
    budget: Budget,
    watch: Watcher = silent,
) -> FigureProof:
    """As :func:`confirm_blocks`, for figures of one setting instead of settings.

    ``plan`` shares its alpha out over as many finalists as there are figures.  The blocks end as
    soon as all ``decisive`` figures are decided.  Raises ValueError for a plan of another number,
    and for blocks of several settings.
    """
    if plan.finalists != len(figures) or len(blocks.settings) != 1:
        raise ValueError(f"{len(figures)} figures of {len(blocks.settings)} settings in {plan}")
    found = FigureProof(Confirmation(blocks, list(blocks.settings)))

    def judge(live: list[Setting], count: int) -> list[Setting]:
        for name, figure in figures.items():
            found.decisions[name] = decide(plan, blocks, live[0], count, figure)
        return [] if all(found.decisions[name].stop for name in decisive) else live

    _look(found.proof, plan, budget, watch, judge)
    return found


def _look(
    result: Confirmation,
    plan: Plan,
    budget: Budget,
    watch: Watcher,
    judge: Callable[[list[Setting], int], list[Setting]],
) -> None:
    """Measure up to each look in turn; ``judge`` decides on so many blocks and returns what goes
    on."""
    blocks, live = result.blocks, list(result.settings)
    most = plan.looks[-1] * (len(live) + 1)
    watch(PhaseStarted("confirm", f"proving against {blocks.reference.key}", most))
    seen = 0
    for look in plan.looks:
        done = measure(blocks, look, live, budget, reach=seen > 0)
        whole = done == look and _repeat_drifted(result, seen, done, live, budget)
        result.cut_short = not whole
        if not whole and seen:
            return  # What the look before said stands.
        live = judge(live, look if whole else min(done, look - 1))
        if not live or result.cut_short:
            return
        seen = done


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


def decide(
    plan: Plan, blocks: Blocks, setting: Setting, count: int, figure: Figure | None = None
) -> Decision:
    """What the first ``count`` blocks say of one setting against their reference."""
    return decide_pairs(plan, blocks.pairs(setting, first=count, figure=figure))


def decide_pairs(plan: Plan, pairs: Pairs) -> Decision:
    """What pairs of runs say of the second setting against the first."""
    return plan.decide(
        pairs.reference,
        pairs.candidate,
        censored_candidate=pairs.censored,
        # Wall time is a clock; a program's own figure may be rounded, which is detected.
        resolution=0.0 if pairs.clock else None,
    )
