"""Paired runs of two settings on one program, interleaved: used by pruning and by the proof.

The comparison of studies makes the measurements. So runs are stored, rejected runs are repeated,
and the same command continues after an interruption.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from autotune.anova.classwide_result import ProgramEvidence
from autotune.anova.layout_rules import local_setting
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest, compare_settings
from autotune.errors import UsageError, WorkError
from autotune.measurement.budget import BudgetTooSmall
from autotune.measurement.events import Watcher, silent
from autotune.notes import Say
from autotune.space import DEFAULT, Setting, Space
from autotune.space.layout import LayoutMap
from autotune.stats import MIN_GAIN, LookPlan
from autotune.store import Store
from autotune.targets.target import Target
from runner.types import finite

LOOKS = (8, 12, 18, 27, 40, 60, 90)
"""Numbers of pairs at the looks on a program. The last is twice that of a study's proof, because
showing the absence of a loss takes more runs than showing a gain."""
MARGIN = 0.02
"""A program slowed by less than this share counts as not slower (``--margin``)."""
PRUNE_LOOKS = (12, 18, 27, 40)
"""Looks of pruning, when a parameter is removed; most parameters are decided at the first look."""

PROOF = "classwide proof"

Compare = Callable[[ComparisonRequest], ComparisonOutcome]


@dataclass(frozen=True)
class ClassProgram:
    """A program on which the setting is proven, with the space that launches it.

    ``layouts``: the words of its space, if the setting of the class is a rule in words of layouts.
    """

    target: Target
    space: Space
    held_out: bool
    layouts: LayoutMap | None = None

    @property
    def name(self) -> str:
        input_words = f" {self.target.input}" if self.target.input else ""
        return f"{self.target.app.name}{input_words} on {self.target.ranks} ranks"

    def own_setting(self, setting: Setting) -> Setting:
        """The setting of the class under this program's parameters."""
        if self.layouts is None or setting == DEFAULT:
            return self.space.canonical(setting)
        return local_setting(self.layouts, setting, self.target.library.family)


@dataclass
class PairTerms:
    """The terms of the measurement.

    ``compare`` runs the pairs of one comparison. ``budget_s`` is for all programs together.
    ``looks`` and ``prune_looks`` are numbers of pairs on a program. ``prune_order`` names the
    parameters that the pruning tries to remove first. ``margin`` and ``min_gain`` are shares (0.02:
    2 %). ``say`` receives a note for each step.
    """

    compare: Compare
    looks: tuple[int, ...] = LOOKS
    margin: float = MARGIN
    min_gain: float = MIN_GAIN
    prune_looks: tuple[int, ...] = PRUNE_LOOKS
    prune: bool = True
    prune_order: tuple[str, ...] = ()
    budget_s: float | None = None
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    say: Say = lambda note: None

    def plan(self, decide_at: int | None = None) -> LookPlan:
        """The looks at one program, with 2.5 % on each side of its interval; raises UsageError."""
        return LookPlan(
            looks=self.looks, min_gain=self.min_gain, margin=self.margin, decide_at=decide_at
        )


def on_machine(store: Store) -> Compare:
    """A ``Compare`` that runs pairs on this machine and stores them in ``store``."""
    return partial(compare_settings, store=store)


class SharedBudget:
    """A budget in seconds, divided over the remaining steps."""

    def __init__(self, budget_s: float | None = None) -> None:
        self._end = None if budget_s is None else time.monotonic() + budget_s

    def share(self, parts: int) -> float | None:
        """Seconds for one of ``parts`` steps; None without a budget."""
        if self._end is None:
            return None
        return max((self._end - time.monotonic()) / max(parts, 1), 0.0)


@dataclass(frozen=True)
class PairsOutcome:
    """The evidence from the pairs on one program; ``cut_short``: the budget ended them."""

    row: ProgramEvidence
    cut_short: bool


def check_programs(setting: Setting, programs: Sequence[ClassProgram]) -> None:
    """Raise UsageError if one of the programs cannot be launched with the setting."""
    for program in programs:
        problems = program.space.violations(program.own_setting(setting), grid=False)
        if problems:
            raise UsageError(
                f"{program.name}: the setting {setting.key!r} cannot be used in space "
                f"{program.space.name}: {'; '.join(problems)}.  Give the space in which the "
                "dataset was measured (--space)",
                code="setting.not_in_space",
            )


def measure_pairs(
    first: Setting,
    second: Setting,
    program: ClassProgram,
    plan: LookPlan,
    terms: PairTerms,
    budget_s: float | None,
    purpose: str = PROOF,
) -> PairsOutcome:
    """Compare ``second`` with ``first`` as ``plan`` says; gains are T_first / T_second - 1.

    Runs are shared only with comparisons of the same ``purpose``. So the proof uses no run that
    contributed to choosing the setting.

    Raises WorkError if ``first`` does not run.
    """
    if budget_s == 0:
        return _no_measurement(program)
    request = ComparisonRequest(
        target=program.target,
        space=program.space,
        first=program.own_setting(first),
        second=program.own_setting(second),
        plan=plan,
        budget_s=budget_s,
        seed=terms.seed,
        guard=terms.guard,
        watch=terms.watch,
        purpose=purpose,
    )
    try:
        outcome = terms.compare(request)
    except BudgetTooSmall:
        return _no_measurement(program)
    if not outcome.first_s and not outcome.failed and not outcome.cut_short:
        raise WorkError(f"{program.name}: no pair was measured", code="classwide.no_pair")
    return PairsOutcome(_row(program, outcome, terms.margin), outcome.cut_short)


def _row(program: ClassProgram, outcome: ComparisonOutcome, margin: float) -> ProgramEvidence:
    comparison = outcome.decision.comparison
    row = replace(
        _empty(program),
        gain=finite(comparison.gain),
        lo=finite(comparison.lo) if comparison.interval else None,
        hi=finite(comparison.hi) if comparison.interval else None,
        pairs=comparison.n,
        words=outcome.words,
        study=outcome.study,
        checks=outcome.checks,
    )
    # A setting that makes a program fail is not its default, even if its other runs are fast.
    lost_runs = len(outcome.first_s) - len(outcome.second_s)
    if outcome.failed or lost_runs:
        reason = (
            outcome.failed or f"{lost_runs} of {comparison.n} runs with it failed or did not end"
        )
        return replace(row, verdict="failed", words=reason)
    if outcome.contradictions:
        reason = "; ".join(note.words for note in outcome.contradictions)
        return replace(row, verdict="failed", words=reason)
    if row.lo is not None and row.lo > -margin:
        return replace(row, verdict="passed")
    if row.hi is not None and row.hi < -margin:
        return replace(row, verdict="slower")
    return row


def _no_measurement(program: ClassProgram) -> PairsOutcome:
    words = "not measured: the budget was spent"
    return PairsOutcome(replace(_empty(program), words=words), True)


def _empty(program: ClassProgram) -> ProgramEvidence:
    target = program.target
    return ProgramEvidence(
        app=target.app.name,
        input=target.input,
        ranks=target.ranks,
        cluster=target.cluster.name,
        held_out=program.held_out,
        gain=None,
        lo=None,
        hi=None,
        pairs=0,
        verdict="open",
        words="",
        study="",
    )
