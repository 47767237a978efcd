"""Randomised interleaved blocks: each holds the reference and every setting compared, once, in
random order.  Blocks already measured are read from the run history: an interrupted comparison
goes on.

The proof: finalists against the default on fresh interleaved blocks, looked at as planned.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting
from autotune.stats import Decision, LookPlan, design, drifted, settle
from autotune.study.budget import Budget, BudgetSpent
from autotune.study.evaluator import Evaluator
from autotune.study.events import PhaseStarted, Watcher, silent
from autotune.study.run_history import Figure, HistoryEntry
from autotune.targets.metric import failure_words

_REPEATS = 3
"""How often a block whose default run failed is measured anew before the study gives up."""


class Blocks:
    """The blocks of one phase: ``settings`` against ``reference``; ``seed`` fixes the orders."""

    def __init__(
        self,
        evaluator: Evaluator,
        phase: str,
        settings: Sequence[Setting],
        seed: int,
        limit_s: float | None,
        reference: Setting = DEFAULT,
    ) -> None:
        self.evaluator = evaluator
        self.phase = phase
        self.settings = tuple(settings)
        self.seed = seed
        self.limit_s = limit_s
        self.reference = reference
        self._orders: list[list[int]] = []
        self._again: Blocks | None = None

    @property
    def again(self) -> Blocks:
        """Where blocks that met a machine at another speed are measured a second time."""
        if self._again is None:
            phase = f"{self.phase}:again"
            self._again = Blocks(
                self.evaluator, phase, self.settings, self.seed, self.limit_s, self.reference
            )
        return self._again

    @property
    def run_s(self) -> float | None:
        """Mean wall seconds of the runs of these blocks so far; None before the first."""
        found = self.evaluator.history.blocks(self.phase).values()
        walls = [entry.record.wall_s for block in found for entry in block.values()]
        return statistics.fmean(walls) if walls else None

    def ensure(self, count: int) -> None:
        """Measure until ``count`` blocks hold the default and every setting."""
        for number in range(count):
            self.ensure_block(number, self.settings)

    def ensure_block(self, number: int, live: Sequence[Setting]) -> None:
        """Measure block ``number`` unless it already holds the default and all of ``live``."""
        if not self.complete(number, live):
            self._measure(number, live)

    def complete(self, number: int, wanted: Sequence[Setting]) -> bool:
        """Whether the run history holds the reference, valid, and all of ``wanted`` in this
        block."""
        block = self.evaluator.history.blocks(self.phase).get(number, {})
        default = block.get(self.reference.key)
        return (
            default is not None
            and default.record.valid
            and all(setting.key in block for setting in wanted)
        )

    def _measure(self, number: int, wanted: Sequence[Setting]) -> None:
        """Make the runs that block ``number`` lacks, in its order.

        A run that is there stays, whatever interrupted its block: a block that were measured anew
        after an interruption would let whoever interrupts choose.
        """
        for _attempt in range(_REPEATS):
            for position, setting in enumerate(self._order(number, wanted)):
                if self._lacks(number, setting):
                    self.evaluator.run(
                        setting,
                        self.phase,
                        block=number,
                        position=position,
                        timeout_s=None if setting == self.reference else self.limit_s,
                    )
            if self.complete(number, wanted):
                return
        entry = self.evaluator.history.blocks(self.phase)[number][self.reference.key]
        raise WorkError(
            f"the reference ({self.reference.key}) failed ({entry.record.reason}) in "
            f"{_REPEATS} attempts of one block. What was measured is stored; the same "
            f"command continues.{failure_words(entry.record)}"
        )

    def _lacks(self, number: int, setting: Setting) -> bool:
        """Whether the run history holds no run of it in this block that counts."""
        entry = self.evaluator.history.blocks(self.phase).get(number, {}).get(setting.key)
        return entry is None or (setting == self.reference and not entry.record.valid)

    def _order(self, number: int, wanted: Sequence[Setting]) -> list[Setting]:
        """Block ``number`` of the design for all settings, those that are decided left out."""
        members = (self.reference, *self.settings)
        if number >= len(self._orders):
            rng = np.random.default_rng([self.seed, _number(self.phase)])
            self._orders = design(len(members), 2 * (number + 1), rng)
        return [s for i in self._orders[number] if (s := members[i]) in (self.reference, *wanted)]

    def speeds(self, until: int) -> list[float]:
        """Seconds of the reference in the first ``until`` blocks, as first measured."""
        blocks = self.evaluator.history.blocks(self.phase)
        return [blocks[n][self.reference.key].record.value_s for n in range(until)]

    def block(self, number: int) -> dict[str, HistoryEntry]:
        """The runs of one block that count: of its repetition, where it was repeated whole."""
        block = self.evaluator.history.blocks(self.phase).get(number, {})
        again = self.evaluator.history.blocks(self.again.phase).get(number, {})
        return again if block.keys() <= again.keys() else block

    def pairs(
        self,
        setting: Setting,
        against: Setting | None = None,
        first: int | None = None,
        figure: Figure | None = None,
    ) -> Pairs:
        """The runs of both in every block that holds both, in block order.

        ``first`` keeps to that many blocks: one that was interrupted may lie behind them.
        ``figure``: of another than the runs' own.

        A candidate that failed counts as slower than anything; one stopped at its limit is slower
        than it says.
        """
        found = Pairs()
        versus = self.reference if against is None else against
        for number in sorted(self.evaluator.history.blocks(self.phase)):
            if first is not None and number >= first:
                break
            block = self.block(number)
            reference, candidate = block.get(versus.key), block.get(setting.key)
            if reference is None or candidate is None or not reference.record.valid:
                continue
            found.censored.append(not candidate.record.valid)
            if figure is None:
                found.reference.append(reference.record.value_s)
                found.candidate.append(_seconds(candidate, reference))
                found.clock = reference.record.metric_s is None
            else:
                value = figure(reference.record)
                found.reference.append(value)
                found.candidate.append(
                    figure(candidate.record) if candidate.record.valid else value
                )
        return found


@dataclass
class Pairs:
    """Seconds of two settings block by block; all lists of one length.

    ``censored`` marks candidates of which only a lower bound is known.
    """

    reference: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    clock: bool = False
    """The figures are wall times, not a program's own figure."""

    def head(self, count: int) -> Pairs:
        """The first so many."""
        return Pairs(
            self.reference[:count], self.candidate[:count], self.censored[:count], self.clock
        )

    @property
    def ratios(self) -> list[float]:
        """candidate / reference of each block, a censored one infinite."""
        return [
            math.inf if cut else c / r
            for r, c, cut in zip(self.reference, self.candidate, self.censored, strict=True)
        ]

    def median_ratio(self) -> float:
        """Median over the blocks; infinite without any."""
        return statistics.median(self.ratios) if self.ratios else math.inf

    def slower_share(self) -> float:
        """Share of the blocks in which the candidate took longer."""
        return sum(r > 1 for r in self.ratios) / len(self.ratios) if self.ratios else 1.0


def _seconds(candidate: HistoryEntry, reference: HistoryEntry) -> float:
    """The candidate's seconds, or what is certain of them."""
    if candidate.record.valid:
        return candidate.record.value_s
    if candidate.censored:
        outside = reference.record.wall_s - reference.record.value_s
        return max(candidate.record.wall_s - outside, reference.record.value_s)
    return reference.record.value_s


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


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
    blocks: Blocks, plan: LookPlan, budget: Budget, watch: Watcher = silent
) -> Confirmation:
    """Run blocks until every setting is decided, the last look is past, or ``budget`` is spent.

    A decided setting is not run again; the others go on against the reference.  Runs that the
    run history already holds are not made again.
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
    plan: LookPlan,
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
    plan: LookPlan,
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
        done = measure_blocks(blocks, look, live, budget, reach=seen > 0)
        whole = done == look and _repeat_drifted(result, seen, done, live, budget)
        result.cut_short = not whole
        if not whole and seen:
            return  # What the look before said stands.
        live = judge(live, look if whole else min(done, look - 1))
        if not live or result.cut_short:
            return
        seen = done


def measure_blocks(
    blocks: Blocks, look: int, live: list[Setting], budget: Budget, reach: bool
) -> int:
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
    plan: LookPlan, blocks: Blocks, setting: Setting, count: int, figure: Figure | None = None
) -> Decision:
    """What the first ``count`` blocks say of one setting against their reference."""
    return decide_pairs(plan, blocks.pairs(setting, first=count, figure=figure))


def decide_pairs(plan: LookPlan, pairs: Pairs) -> Decision:
    """What pairs of runs say of the second setting against the first."""
    return plan.decide(
        pairs.reference,
        pairs.candidate,
        censored_candidate=pairs.censored,
        # Wall time is a clock; a program's own figure may be rounded, which is detected.
        resolution=0.0 if pairs.clock else None,
    )
