"""A class-wide setting on the machine: interleaved with the default on every program.

Everything is measured by the study's own comparison, so runs are stored, rejected ones repeated,
and the same command continues where an interruption ended it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from autotune.anova.pooled import mean_gain
from autotune.anova.result import ProgramEvidence
from autotune.errors import UsageError, WorkError
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import MIN_GAIN, Plan
from autotune.store import Store
from autotune.study.budget import BudgetTooSmall
from autotune.study.compare import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.events import Watcher, silent
from autotune.study.target import Target

PRUNE_PAIRS = 12
"""Pairs on each program when a parameter is taken out."""
BAD = ("worse", "failed")


@dataclass(frozen=True)
class Program:
    """A program to prove the setting on, with the space that launches it."""

    target: Target
    space: Space
    held_out: bool

    @property
    def name(self) -> str:
        given = f" {self.target.input}" if self.target.input else ""
        return f"{self.target.app.name}{given} on {self.target.ranks} ranks"


@dataclass
class Terms:
    """How to measure.  ``budget_s`` is for everything together; ``say`` hears one line a step."""

    store: Store
    plan: Plan = field(default_factory=Plan)
    prune_pairs: int = PRUNE_PAIRS
    budget_s: float | None = None
    min_gain: float = MIN_GAIN
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    say: Callable[[str], None] = lambda words: None
    prune: bool = True


@dataclass(frozen=True)
class Proof:
    """What came of it; ``gain`` is the mean over the programs of the class with a 95 % interval."""

    proven: bool
    setting: Setting
    why: str
    gain: float | None
    lo: float | None
    hi: float | None
    held_out_gain: float | None
    evidence: tuple[ProgramEvidence, ...]
    pruned: tuple[str, ...]
    cut_short: bool


def check_programs(setting: Setting, programs: Sequence[Program]) -> None:
    """Refuse a setting that one of the programs cannot be given; raises UsageError."""
    for program in programs:
        problems = program.space.violations(setting, grid=False)
        if problems:
            raise UsageError(
                f"{program.name}: the setting {setting.key!r} cannot be used in space "
                f"{program.space.name}: {'; '.join(problems)}.  Give the space that the dataset "
                "was measured in (--space)"
            )


def prove(setting: Setting, programs: Sequence[Program], terms: Terms) -> Proof:
    """Prune on the programs of the class, then compare with the default on all of them.

    Raises UsageError where the setting does not fit a program, WorkError where the default does
    not run.
    """
    check_programs(setting, programs)
    clock = _Clock(terms.budget_s)
    members = [program for program in programs if not program.held_out]
    kept, pruned = setting, ()  # type: tuple[Setting, tuple[str, ...]]
    if terms.prune:
        kept, pruned = prune(setting, members, terms, clock)
    if kept == DEFAULT:
        why = "every parameter could be taken out without making anything worse"
        return Proof(False, DEFAULT, why, None, None, None, None, (), pruned, clock.spent)
    shown = []
    for number, program in enumerate(programs):
        terms.say(f"{number + 1}/{len(programs)}  proving on {program.name}")
        left = clock.share(len(programs) - number)
        shown.append(_against(DEFAULT, kept, program, terms.plan, terms, left))
    return _conclude(kept, programs, shown, pruned, terms)


def prune(
    setting: Setting, programs: Sequence[Program], terms: Terms, clock: _Clock | None = None
) -> tuple[Setting, tuple[str, ...]]:
    """The setting without the parameters that can be taken out, and their names.

    One after the other is taken out of what is left; it stays only if taking it out makes the
    programs slower together, or one of them certainly.  A setting of one parameter is left as it
    is: the comparison with the default says the same.
    """
    clock = clock or _Clock(None)
    kept: Setting = setting
    gone: list[str] = []
    plan = Plan.fixed(terms.prune_pairs, min_gain=terms.min_gain)
    names = list(setting)
    for number, name in enumerate(names):
        if len(kept) == 1:
            break
        terms.say(f"{number + 1}/{len(names)}  without {name}")
        if not _is_needed(kept, kept.without(name), programs, plan, terms, clock):
            kept, gone = kept.without(name), [*gone, name]
    return kept, tuple(gone)


def _is_needed(
    setting: Setting,
    without: Setting,
    programs: Sequence[Program],
    plan: Plan,
    terms: Terms,
    clock: _Clock,
) -> bool:
    """Whether taking it out makes something worse.  Where the two launch alike it does not."""
    shown = []
    for program in programs:
        first, second = program.space.canonical(setting), program.space.canonical(without)
        if first == second:
            continue
        left = clock.share(len(programs) * (len(setting) + 1))
        shown.append(_against(first, second, program, plan, terms, left))
    # What could not be measured to the end was not shown to be needless.
    if any(o.evidence.verdict in BAD or not o.logs for o in shown):
        return True
    return bool(shown) and mean_gain([o.logs for o in shown], terms.seed)[2] < 0


@dataclass(frozen=True)
class _Shown:
    evidence: ProgramEvidence
    logs: list[float]
    """log(T_first / T_second) of every pair; empty where pairs are incomplete."""
    cut_short: bool


def _against(
    first: Setting,
    second: Setting,
    program: Program,
    plan: Plan,
    terms: Terms,
    budget_s: float | None,
) -> _Shown:
    request = ComparisonRequest(
        target=program.target,
        space=program.space,
        first=program.space.canonical(first),
        second=program.space.canonical(second),
        plan=plan,
        budget_s=budget_s,
        seed=terms.seed,
        guard=terms.guard,
        watch=terms.watch,
    )
    if budget_s == 0:
        return _unmeasured(program)
    try:
        outcome = compare_settings(request, terms.store)
    except BudgetTooSmall:
        return _unmeasured(program)
    if not outcome.first_s and not outcome.failed and not outcome.cut_short:
        raise WorkError(f"{program.name}: no pair was measured")
    whole = len(outcome.first_s) == len(outcome.second_s)
    pairs = zip(outcome.first_s, outcome.second_s, strict=True) if whole else []
    logs = [math.log(a / b) for a, b in pairs if a > 0 and b > 0]
    return _Shown(_evidence(program, outcome), logs, outcome.cut_short)


def _unmeasured(program: Program) -> _Shown:
    target = program.target
    evidence = ProgramEvidence(
        app=target.app.name,
        input=target.input,
        ranks=target.ranks,
        cluster=target.cluster.name,
        held_out=program.held_out,
        gain=None,
        lo=None,
        hi=None,
        pairs=0,
        verdict="continue",
        words="not measured: the budget was spent",
        study="",
    )
    return _Shown(evidence, [], True)


def _evidence(program: Program, outcome: ComparisonOutcome) -> ProgramEvidence:
    seen = outcome.decision.comparison
    target = program.target
    return ProgramEvidence(
        app=target.app.name,
        input=target.input,
        ranks=target.ranks,
        cluster=target.cluster.name,
        held_out=program.held_out,
        gain=_finite(seen.gain),
        lo=_finite(seen.lo) if seen.interval else None,
        hi=_finite(seen.hi) if seen.interval else None,
        pairs=seen.n,
        verdict="failed" if outcome.failed else outcome.decision.outcome,
        words=outcome.failed or outcome.words,
        study=outcome.study,
    )


def _conclude(
    setting: Setting,
    programs: Sequence[Program],
    shown: Sequence[_Shown],
    pruned: tuple[str, ...],
    terms: Terms,
) -> Proof:
    evidence = tuple(one.evidence for one in shown)
    complete = all(one.logs for one in shown)
    members = [o.logs for o, p in zip(shown, programs, strict=True) if not p.held_out and o.logs]
    others = [o.logs for o, p in zip(shown, programs, strict=True) if p.held_out and o.logs]
    gain, lo, hi = mean_gain(members, terms.seed) if members else (None, None, None)
    held = mean_gain(others, terms.seed)[0] if others else None
    why = _objection(evidence, complete, gain, lo, held, terms.min_gain)
    words = why or "faster over the class, and slower on no program"
    cut = any(one.cut_short for one in shown)
    return Proof(not why, setting, words, gain, lo, hi, held, evidence, pruned, cut)


def _objection(
    evidence: Sequence[ProgramEvidence],
    complete: bool,
    gain: float | None,
    lo: float | None,
    held: float | None,
    min_gain: float,
) -> str:
    """Why it is not proven; "" where it is."""
    bad = [row for row in evidence if row.verdict in BAD]
    if bad:
        names = ", ".join(f"{row.app} {row.input or ''}".strip() for row in bad)
        return f"slower than the default, or failing, on {names}"
    if not complete or gain is None or lo is None:
        return "not every program was measured to the end"
    if lo <= 0 or gain < min_gain:
        return f"a mean gain of {min_gain:.0%} or more is not proven"
    if held is not None and held <= 0:
        return "programs that were held out do not gain"
    return ""


class _Clock:
    """Seconds of a budget, shared out over what is still to be done."""

    def __init__(self, budget_s: float | None) -> None:
        self._end = None if budget_s is None else time.monotonic() + budget_s

    @property
    def spent(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def share(self, parts: int) -> float | None:
        """Seconds for one of ``parts``; None without a budget."""
        if self._end is None:
            return None
        return max((self._end - time.monotonic()) / max(parts, 1), 0.0)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
