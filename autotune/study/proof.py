"""The proof: randomised interleaved blocks, their pairs, and the looks that decide on finalists.

A block has the reference and every compared setting, once, in random order. Blocks that are
measured already are read from the run history, so an interrupted comparison continues.

A run may leave the machine slower for the next one: by heat, in memory or in the page cache. A lead
is a run of the same setting directly before a run that counts; its own time is not used
(docs/explanation/statistics.md, "Runs that disturb the next one").

The proof compares finalists with the default on fresh interleaved blocks, with looks as planned.
Pairs are the figures of two settings, block by block.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from autotune.errors import WorkError
from autotune.measurement.bench import ATTEMPTS
from autotune.measurement.budget import Budget, BudgetSpent
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import PhaseStarted, Watcher, silent
from autotune.measurement.figure_time import covered_s, least_ratio
from autotune.measurement.run_history import LEAD, Figure, HistoryEntry
from autotune.space import DEFAULT, Setting
from autotune.stats import Decision, LookPlan, design, drift_blocks, settle
from autotune.targets.file_in_way import refuses_file
from autotune.targets.metric import failure_words

_MOST_ATTEMPTS = 12
"""Attempts at a block before a reference is given up that fails in fewer than half of its runs."""


class ReferenceFailure(WorkError):
    """The reference of a block failed in every attempt."""


@dataclass(eq=False)
class Blocks:
    """The blocks of one phase: ``settings`` against ``reference``; ``seed`` fixes the orders.

    ``leads``: every run follows a run of its own setting. ``symmetric``: a run of a setting that
    failed is repeated as one of the reference is. ``limit_s`` and ``reference_limit_s`` are the
    wall seconds after which a run of the settings or of the reference is stopped; None: not before
    the user's own limit.
    """

    evaluator: Evaluator
    phase: str
    settings: Sequence[Setting]
    seed: int
    limit_s: float | None
    reference: Setting = DEFAULT
    reference_limit_s: float | None = None
    leads: bool = field(default=False, kw_only=True)
    symmetric: bool = field(default=False, kw_only=True)
    _orders: list[list[int]] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def repetition(self) -> Blocks:
        """The blocks that repeat those in which the machine had an unusual speed."""
        return dataclasses.replace(self, phase=f"{self.phase}:again")

    @property
    def phases(self) -> tuple[str, ...]:
        """Names of all phases in which runs are made for these blocks."""
        own = (self.phase, f"{self.phase}:again")
        return (*own, *(f"{phase}:{LEAD}" for phase in own))

    def runs(self, blocks: int, live: int) -> int:
        """Expected number of runs in ``blocks`` blocks of the reference and ``live`` settings."""
        size = live + 1
        # A lead is not needed where the block before ended with the setting: once in ``size``.
        return math.ceil(blocks * (size + (size - 1 / size if self.leads else 0)))

    @property
    def run_s(self) -> float | None:
        """Mean wall seconds of the runs of these blocks so far; None before the first."""
        blocks = self.evaluator.history.blocks(self.phase).values()
        walls = [entry.record.wall_s for block in blocks for entry in block.values()]
        return statistics.fmean(walls) if walls else None

    def ensure_block(self, number: int, live: Sequence[Setting]) -> None:
        """Measure block ``number``, unless it already has the reference and all of ``live``."""
        if not self.complete(number, live):
            self._measure(number, live)

    def complete(self, number: int, settings: Sequence[Setting]) -> bool:
        """Whether the run history has a valid run of the reference and runs of all ``settings``.

        Only runs in block ``number`` count.
        """
        return not any(self._lacks(number, setting) for setting in (self.reference, *settings))

    def _measure(self, number: int, live: Sequence[Setting]) -> None:
        """Make the missing runs of block ``number``, in its order.

        A run that exists stays, whatever interrupted its block. If a block were measured again
        after an interruption, the person who interrupts could choose among results. Raises
        ReferenceFailed if the reference fails in every attempt.
        """
        order = self._order(number, live)
        while self._attempts(number, self.reference) < _MOST_ATTEMPTS:
            for position, setting in enumerate(order):
                if self._lacks(number, setting):
                    if self.leads and self.evaluator.history.previous != setting.key:
                        self._run(setting, f"{self.phase}:{LEAD}", number, position)
                    self._run(setting, self.phase, number, position)
            if self.complete(number, live):
                return
            failures, launches = self.failures(self.reference, cut=True)
            is_last_attempt = self._attempts(number, self.reference) >= ATTEMPTS
            if self._lacks(number, self.reference) and is_last_attempt and 2 * failures > launches:
                break
        entry = self.evaluator.history.blocks(self.phase)[number][self.reference.key]
        attempts = self._attempts(number, self.reference)
        words = (
            f"the reference ({self.reference.key}) failed ({entry.record.reason}) in {attempts} "
            "attempts of one block. What was measured is stored; the same command "
            f"continues.{failure_words(entry.record, self.evaluator.history.written_files)}"
        )
        if refuses_file(entry.record):
            raise ReferenceFailure(words, code="work.file_exists")
        raise ReferenceFailure(words, code="proof.reference_fails")

    def _run(self, setting: Setting, phase: str, number: int, position: int) -> None:
        is_reference = setting == self.reference
        self.evaluator.run(
            setting,
            phase,
            block=number,
            position=position,
            timeout_s=self.reference_limit_s if is_reference else self.limit_s,
        )

    def failures(self, setting: Setting, cut: bool = False) -> tuple[int, int]:
        """Number of failed launches of a setting in these blocks, and of all its launches.

        A run that the guard rejected has not failed; one that was stopped at a limit has with
        ``cut``.
        """
        records = [
            entry.record
            for entry in self.evaluator.history.entries
            if entry.phase in self.phases and entry.key == setting.key and entry.counts
        ]
        failures = sum(not r.valid and (cut or r.state != "timeout") for r in records)
        return failures, len(records)

    def _attempts(self, number: int, setting: Setting) -> int:
        """Number of launches of a setting in one block that the guard did not reject."""
        return sum(
            entry.phase == self.phase and entry.block == number and entry.counts
            for entry in self.evaluator.history.entries
            if entry.key == setting.key
        )

    def _lacks(self, number: int, setting: Setting) -> bool:
        """Whether the run history has no run of the setting in this block that counts.

        A failure of the reference never counts; of a setting it counts at once or, if the blocks
        are symmetric and the setting has ever run, after :data:`ATTEMPTS` attempts.
        """
        entry = self.evaluator.history.blocks(self.phase).get(number, {}).get(setting.key)
        if entry is None or entry.record.valid:
            return entry is None
        if setting == self.reference:
            return True
        if not self.symmetric or entry.censored:
            return False
        entries = self.evaluator.history.entries
        runs = any(one.record.valid for one in entries if one.key == setting.key)
        return runs and self._attempts(number, setting) < ATTEMPTS

    def _order(self, number: int, live: Sequence[Setting]) -> list[Setting]:
        """The order of block ``number``: the design for all settings, without the decided ones."""
        members = (self.reference, *self.settings)
        if number >= len(self._orders):
            rng = np.random.default_rng([self.seed, _number(self.phase)])
            self._orders = design(len(members), 2 * (number + 1), rng)
        return [s for i in self._orders[number] if (s := members[i]) in (self.reference, *live)]

    def speeds(self, until: int) -> list[float]:
        """Seconds of the reference in the first ``until`` blocks, as first measured."""
        blocks = self.evaluator.history.blocks(self.phase)
        return [blocks[n][self.reference.key].record.value_s for n in range(until)]

    def block(self, number: int) -> dict[str, HistoryEntry]:
        """The runs of one block that count; those of its repetition, if that is complete."""
        block = self.evaluator.history.blocks(self.phase).get(number, {})
        repetition = self.evaluator.history.blocks(self.repetition.phase).get(number, {})
        return repetition if block.keys() <= repetition.keys() else block

    def pairs(
        self,
        setting: Setting,
        against: Setting | None = None,
        first: int | None = None,
        figure: Figure | None = None,
    ) -> Pairs:
        """The runs of both settings in every block that has both, in block order.

        ``first`` restricts the pairs to that many blocks, since an interrupted block may follow.
        ``figure``: use another figure than the runs' own. A candidate that failed counts as slower
        than anything; a candidate that was stopped at its limit is slower than its recorded time.
        """
        pairs = Pairs()
        versus = self.reference if against is None else against
        for number in sorted(self.evaluator.history.blocks(self.phase)):
            if first is not None and number >= first:
                break
            block = self.block(number)
            reference, candidate = block.get(versus.key), block.get(setting.key)
            if reference is None or candidate is None or not reference.record.valid:
                continue
            pairs.censored.append(not candidate.record.valid)
            if figure is None:
                pairs.reference.append(reference.record.value_s)
                pairs.candidate.append(candidate_seconds(candidate, reference))
                pairs.clock = reference.record.metric_s is None
            else:
                value = figure(reference.record)
                pairs.reference.append(value)
                pairs.candidate.append(
                    figure(candidate.record) if candidate.record.valid else value
                )
        return pairs


def order_seed(study: str, seed: int) -> int:
    """The seed of the orders of a study's blocks; ``study`` is its hash.

    No other study has the same orders, so what one of them shows by chance is not repeated.
    """
    return _number(f"{study}:{seed}")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


DRIFT_SHARE = 0.5
"""Largest share of new blocks at another speed; with more there is no usual speed to repeat at."""


@dataclass
class Confirmation:
    """Decisions per finalist, in the given order; ``cut_short`` if a budget ended the looks."""

    blocks: Blocks
    settings: list[Setting]
    decisions: dict[Setting, Decision] = field(default_factory=dict)
    cut_short: bool = False
    repeats: int = 0
    """Number of blocks that were repeated because the machine had an unusual speed."""
    unsteady: int = 0
    """Number of blocks at another speed that were not repeated: the speed changed all the time."""

    @property
    def winners(self) -> list[Setting]:
        """Proven finalists, the largest gain first."""
        better = [s for s in self.settings if self.decisions[s].outcome == "better"]
        return sorted(better, key=lambda s: -self.decisions[s].comparison.gain)

    @property
    def open(self) -> list[Setting]:
        """Finalists that are neither proven nor refuted."""
        outcomes = ("continue", "undecided")
        return [s for s in self.settings if self.decisions[s].outcome in outcomes]


def confirm_blocks(
    blocks: Blocks, plan: LookPlan, budget: Budget, watch: Watcher = silent
) -> Confirmation:
    """Run blocks until every setting is decided, the last look is done, or ``budget`` is spent.

    A decided setting is not run again; the others continue against the reference. Runs that are in
    the run history already are not made again.
    """
    result = Confirmation(blocks, list(blocks.settings))

    def judge(live: list[Setting], count: int) -> list[Setting]:
        for setting in live:
            result.decisions[setting] = decide(plan, blocks, setting, count)
        _settle(result, plan.min_gain)
        return [s for s in live if not result.decisions[s].stop]

    take_looks(result, plan, budget, watch, judge)
    return result


def take_looks(
    result: Confirmation,
    plan: LookPlan,
    budget: Budget,
    watch: Watcher,
    judge: Callable[[list[Setting], int], list[Setting]],
) -> None:
    """Measure up to each look; ``judge`` decides on the blocks and returns the open settings."""
    blocks, live = result.blocks, list(result.settings)
    most = blocks.runs(plan.looks[-1], len(live))
    watch(PhaseStarted("confirm", f"proving against {blocks.reference.key}", most))
    last_count = 0
    for look in plan.looks:
        count = measure_blocks(blocks, look, live, budget, reach=last_count > 0)
        whole = count == look and _repeat_drift_blocks(result, last_count, count, live, budget)
        result.cut_short = not whole
        if not whole and last_count:
            return  # The decision of the look before stands.
        live = judge(live, look if whole else min(count, look - 1))
        if not live or result.cut_short:
            return
        last_count = count


def measure_blocks(
    blocks: Blocks, look: int, live: list[Setting], budget: Budget, reach: bool
) -> int:
    """Measure up to ``look`` blocks; returns how many blocks there are.

    With ``reach``, nothing is started if the budget does not hold all blocks of the look, because
    blocks between two looks decide nothing.
    """
    complete = 0
    while complete < look and blocks.complete(complete, live):
        complete += 1
    if reach and not budget.affords(blocks.runs(look - complete, len(live)), blocks.run_s):
        return complete
    for number in range(complete, look):
        cost = blocks.runs(1, len(live))
        if not blocks.complete(number, live) and not budget.affords(cost, blocks.run_s):
            return number
        try:
            blocks.ensure_block(number, live)
        except BudgetSpent:
            return number
    return look


def _repeat_drift_blocks(
    result: Confirmation, first: int, until: int, live: list[Setting], budget: Budget
) -> bool:
    """Repeat the new blocks in which the machine had an unusual speed.

    Drift is judged once, when a look is complete, and only from the reference's runs: a block is
    never repeated because of a candidate's time. Returns False if the budget does not hold the
    repetitions.
    """
    blocks = result.blocks
    drift_numbers = [n for n in drift_blocks(blocks.speeds(until)) if n >= first]
    if len(drift_numbers) > DRIFT_SHARE * (until - first):
        result.unsteady += len(drift_numbers)
        return True
    for number in drift_numbers:
        cost = blocks.runs(1, len(live))
        if not blocks.repetition.complete(number, live) and not budget.affords(cost, blocks.run_s):
            return False
        try:
            blocks.repetition.ensure_block(number, live)
        except BudgetSpent:
            return False
        result.repeats += 1
    return True


def _settle(result: Confirmation, min_gain: float) -> None:
    """Stop finalists that cannot become the recommendation.

    They trail a winner, or a winner is a part of them and is not seen to be slower. A part of a
    winner that is not seen to be slower would be preferred, so it goes on.
    """
    before = dict(result.decisions)
    decisions = settle([before[s] for s in result.settings])
    result.decisions = dict(zip(result.settings, decisions, strict=True))
    for setting in result.settings:
        if before[setting].stop:
            continue
        if any(_as_fast_part(result, w, setting, min_gain) for w in result.winners):
            why = "a part of it won and is not seen to be slower"
            result.decisions[setting] = dataclasses.replace(
                before[setting], outcome="futile", why=why, next_look=None
            )
        elif any(_as_fast_part(result, setting, w, min_gain) for w in result.winners):
            result.decisions[setting] = before[setting]


def _as_fast_part(result: Confirmation, part: Setting, whole: Setting, min_gain: float) -> bool:
    """Whether ``part`` has some of the values of ``whole`` and is not seen to be slower."""
    return part.items() < whole.items() and not matters(
        result.blocks.pairs(part, against=whole), min_gain
    )


def decide(
    plan: LookPlan, blocks: Blocks, setting: Setting, count: int, figure: Figure | None = None
) -> Decision:
    """The decision on one setting against its reference after the first ``count`` blocks."""
    return decide_pairs(plan, blocks.pairs(setting, first=count, figure=figure))


def decide_pairs(plan: LookPlan, pairs: Pairs) -> Decision:
    """The decision on the second setting of the pairs against the first."""
    return plan.decide(
        pairs.reference,
        pairs.candidate,
        censored_candidate=pairs.censored,
        # Wall time is a clock; a program's own figure may be rounded, which is detected.
        resolution=0.0 if pairs.clock else None,
    )


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

    def reverse(self) -> Pairs:
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


def matters(without: Pairs, min_gain: float) -> bool:
    """Whether a setting is slower than its pair partner, by enough and in nearly all blocks."""
    worse = without.median_ratio() > 1 + min_gain / 2
    return worse and without.slower_share() >= MISSED_SHARE


def candidate_seconds(candidate: HistoryEntry, reference: HistoryEntry) -> float:
    """The candidate's seconds, or a certain lower bound of them."""
    if candidate.record.valid:
        return candidate.record.value_s
    if candidate.censored:
        least = least_ratio(candidate.record, [reference.record], covered_s(reference.record))
        return max(least or 1.0, 1.0) * reference.record.value_s
    return reference.record.value_s
