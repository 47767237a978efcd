"""The proof of a class-wide setting: runs interleaved with the default on every program.

A setting is proven if each program, including held-out ones, is shown not to be slower by more than
the margin, and if the class is shown to gain on average. Each program is tested at one-sided 2.5 %.
The statement "all of them passed" is then wrong with at most 2.5 % (intersection-union test), so
the error is not split over the programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.anova.class_pruning import ClassPruning, prune
from autotune.anova.classwide import MeanGain, mean_gain
from autotune.anova.classwide_result import HeldOut, ProgramEvidence
from autotune.anova.paired_runs import (
    ClassProgram,
    PairsOutcome,
    PairTerms,
    SharedBudget,
    check_programs,
    measure_pairs,
)
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.wording import UNGUARDED, percent


@dataclass(frozen=True)
class ClasswideProof:
    """The outcome.  ``gain`` is the mean over the programs of the class with a 95 % interval,
    ``held_out`` the mean over the held-out programs.

    ``held_out_shows``: "gain" (interval above 0), "no loss" (above -margin), "loss" (below 0), else
    "open"; None without such programs. ``next_step`` says what would decide an open proof.
    """

    proven: bool
    setting: Setting
    why: str
    margin: float
    gain: MeanGain | None
    held_out: MeanGain | None
    held_out_shows: HeldOut | None
    evidence: tuple[ProgramEvidence, ...]
    pruned: ClassPruning
    next_step: str
    cut_short: bool


def prove_class(
    setting: Setting, programs: Sequence[ClassProgram], terms: PairTerms
) -> ClasswideProof:
    """Prune on the programs of the class, then compare with the default on all programs.

    Raises UsageError if a program cannot be launched with the setting, WorkError if the default
    does not run.
    """
    check_programs(setting, programs)
    clock = SharedBudget(terms.budget_s)
    members = [program for program in programs if not program.held_out]
    if terms.prune:
        pruning = prune(setting, members, terms, clock)
    else:
        pruning = ClassPruning(setting, unproven=tuple(setting) if len(setting) > 1 else ())
    outcomes: list[PairsOutcome] = []
    for number, program in enumerate(programs):
        words = f"{number + 1}/{len(programs)}  proving on {program.name}"
        terms.say(Note("classwide.program", words, {"program": program.name}))
        left = clock.share(len(programs) - number)
        outcomes.append(measure_pairs(DEFAULT, pruning.setting, program, terms.plan(), terms, left))
    _go_on(pruning.setting, programs, outcomes, terms, clock)
    return _conclude(pruning, outcomes, terms)


def _go_on(
    setting: Setting,
    programs: Sequence[ClassProgram],
    outcomes: list[PairsOutcome],
    terms: PairTerms,
    clock: SharedBudget,
) -> None:
    """Take further looks within the budget: at programs that are still open, and, once all have
    passed, at those that leave the mean gain open."""
    exhausted_numbers: set[int] = set()
    while clock.share(1) != 0:
        number = _next(outcomes, terms, exhausted_numbers)
        if number is None:
            return
        row = outcomes[number].row
        further_looks = [look for look in terms.looks if look > row.pairs]
        words = f"{row.app}: continuing to {further_looks[0]} pairs"
        terms.say(Note("classwide.further", words, {"program": row.app, "pairs": further_looks[0]}))
        plan = terms.plan(decide_at=further_looks[0] if row.verdict == "passed" else None)
        more = measure_pairs(DEFAULT, setting, programs[number], plan, terms, clock.share(1))
        if more.row.pairs > row.pairs:
            outcomes[number] = more
        else:
            exhausted_numbers.add(number)


def _next(
    outcomes: Sequence[PairsOutcome], terms: PairTerms, exhausted_numbers: set[int]
) -> int | None:
    """Index of the program whose next look decides most; None if no look changes the answer."""
    rows = [one.row for one in outcomes]
    last = terms.looks[-1]
    free = [n for n, row in enumerate(rows) if row.pairs < last and n not in exhausted_numbers]
    if any(row.verdict in ("failed", "slower") for row in rows):
        return None
    unsure = [n for n, row in enumerate(rows) if row.verdict == "open"]
    if unsure:
        return unsure[0] if all(n in free for n in unsure) else None
    mean = mean_gain(_members(rows))
    if mean is None or _gains(mean, terms.min_gain) or mean.hi < terms.min_gain:
        return None
    able = [n for n in free if not rows[n].held_out]
    return max(able, key=lambda n: (rows[n].gain or 0.0) - (rows[n].lo or 0.0), default=None)


def _members(rows: Sequence[ProgramEvidence]) -> list[ProgramEvidence]:
    return [row for row in rows if not row.held_out]


def _gains(mean: MeanGain, min_gain: float) -> bool:
    return mean.lo > 0 and mean.gain >= min_gain


def _conclude(
    pruning: ClassPruning, outcomes: Sequence[PairsOutcome], terms: PairTerms
) -> ClasswideProof:
    rows = [one.row for one in outcomes]
    gain = mean_gain(_members(rows))
    held_out_gain = mean_gain([row for row in rows if row.held_out])
    outsiders = any(row.held_out for row in rows)
    why, step = _objection(rows, gain, terms)
    if not terms.guard:
        why, step = f"{UNGUARDED}, which proves nothing", "the same command without --no-guard"
        rows = [_shows_nothing(row) for row in rows]
        outsiders = False
    success = (
        f"faster over the class, and shown not to be more than {percent_of(terms.margin)} slower "
        "on any program"
    )
    return ClasswideProof(
        proven=not why,
        setting=pruning.setting,
        why=why or success,
        margin=terms.margin,
        gain=gain,
        held_out=held_out_gain,
        held_out_shows=_held_out(held_out_gain, terms.margin) if outsiders else None,
        evidence=tuple(rows),
        pruned=pruning,
        next_step=step,
        cut_short=any(one.cut_short for one in outcomes),
    )


def _shows_nothing(row: ProgramEvidence) -> ProgramEvidence:
    """The row of a program measured without the guard: its figures, but no verdict."""
    return replace(row, verdict="unguarded") if row.verdict in ("passed", "slower") else row


def _held_out(mean: MeanGain | None, margin: float) -> HeldOut:
    if mean is None:
        return "open"
    if mean.lo > 0:
        return "gain"
    if mean.hi < 0:
        return "loss"
    return "no loss" if mean.lo > -margin else "open"


def _objection(
    rows: Sequence[ProgramEvidence], gain: MeanGain | None, terms: PairTerms
) -> tuple[str, str]:
    """Why the setting is not proven, and what would decide it; each is "" if there is no
    objection."""
    bad = [row for row in rows if row.verdict in ("failed", "slower")]
    if bad:
        names = ", ".join(f"{_name(row)} ({row.verdict})" for row in bad)
        return f"more than {percent_of(terms.margin)} slower, or failing, on {names}", ""
    unsure = [row for row in rows if row.verdict != "passed"]
    if unsure:
        names = ", ".join(_name(row) for row in unsure)
        return f"not proven: undecided on {names}", "; ".join(_more(row, terms) for row in unsure)
    assert gain is not None  # Every program that passed has an interval.
    if _gains(gain, terms.min_gain):
        return "", ""
    least = percent_of(terms.min_gain)
    if gain.hi < terms.min_gain:
        return f"a mean gain of {least} is ruled out (at most {percent(gain.hi)})", ""
    words = f"not proven: a mean gain of {least} or more is undecided"
    free = [row for row in _members(rows) if row.pairs < terms.looks[-1]]
    step = (
        "more pairs are needed: the same command with a larger --budget continues" if free else ""
    )
    return words, step or f"all {terms.looks[-1]} pairs of every program have been measured"


def _more(row: ProgramEvidence, terms: PairTerms) -> str:
    """How many more pairs would show that a program is not slower, at its present gain."""
    last = terms.looks[-1]
    if row.gain is None or row.lo is None:
        first = terms.plan().first_interval
        return f"{_name(row)}: at least {max(first - row.pairs, 1)} more pairs"
    if row.gain <= -terms.margin:
        return f"{_name(row)} looks slower: {last - row.pairs} more pairs would decide" + (
            ", if more were planned" if row.pairs >= last else ""
        )
    least_pairs = math.ceil(row.pairs * ((row.gain - row.lo) / (row.gain + terms.margin)) ** 2)
    more = max(least_pairs - row.pairs, 1)
    if row.pairs + more > last:
        return (
            f"{_name(row)}: about {more} more pairs would decide it, which is more than "
            f"the {last} planned"
        )
    return f"{_name(row)}: about {more} more pairs would decide it (--budget)"


def _name(row: ProgramEvidence) -> str:
    return f"{row.app} {row.input or ''}".strip()


def percent_of(share: float) -> str:
    """A share as the user gave it: 2 %, 0.5 %."""
    return f"{100 * share:g} %"
