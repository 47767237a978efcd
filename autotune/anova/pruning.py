"""Parameters that are not shown to act are taken out of a class-wide setting before its proof.

Two errors are possible.  A parameter that acts may be taken out: that loses gain, and nothing else,
for the smaller setting is proven against the default on fresh runs.  One that does nothing may be
kept: everybody would be told to set it, on no evidence, and on the next program it may do harm.
The second is the worse one, so the burden of proof lies on the parameter: it stays only if without
it the programs are shown to be slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from autotune.anova.classwide import mean_gain
from autotune.anova.paired_runs import PairsOutcome, PairTerms, Program, SharedBudget, measure_pairs
from autotune.space import Setting
from autotune.stats import LookPlan
from autotune.study.ablation import Elimination

ALPHA = 0.05
PURPOSE = "classwide pruning"
Answer = Literal["needed", "not slower", "open", "unmeasured"]
GONE = ("not slower", "open")
"""Answers with which a parameter is taken out."""


@dataclass(frozen=True)
class Pruned:
    """``setting`` is what is left.

    ``without`` was taken out; of that, ``unclear`` neither shown to act nor shown to cost less than
    the margin.  ``unproven`` stayed in for want of budget, or since nothing is launched without it,
    not because it was shown to act.
    """

    setting: Setting
    without: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


def prune(
    setting: Setting,
    programs: Sequence[Program],
    terms: PairTerms,
    clock: SharedBudget | None = None,
) -> Pruned:
    """Take one parameter after the other out of what is left and compare on every program.

    A setting of one parameter is left as it is: the comparison with the default says the same.
    """
    clock = clock or SharedBudget()
    answers: dict[str, Answer] = {}
    names = list(setting)
    left = Elimination(setting, [program.space for program in programs])
    for number, name in enumerate(names):
        if len(left.setting) == 1:
            break
        if name not in left.setting:
            answers[name] = "not slower"  # It meant nothing without one that was taken out.
            continue
        terms.say(f"{number + 1}/{len(names)}  without {name}")
        smaller = left.without((name,))
        if smaller is None:
            answers[name] = "unmeasured"
            continue
        answers[name] = _try(left.setting, smaller, programs, terms, clock)
        if answers[name] in GONE:
            left.take_out({(name,): 1.0})
    # The last one left is judged by the proof itself.
    alone = len(left.setting) == 1
    return Pruned(
        left.setting,
        tuple(n for n, said in answers.items() if said in GONE),
        tuple(n for n, said in answers.items() if said == "open"),
        () if alone else tuple(n for n, said in answers.items() if said == "unmeasured"),
    )


def prune_plan(terms: PairTerms, programs: int) -> LookPlan:
    """The looks at one program when a parameter is taken out.

    Alpha is split over the programs and their mean, for each of them may keep a parameter; the last
    look has so many pairs at least that an interval exists.
    """
    judged = programs + 1
    least = math.ceil(math.log2(2 * judged / ALPHA))
    looks = terms.prune_looks if terms.prune_looks[-1] >= least else (least,)
    return LookPlan(looks=looks, finalists=judged, min_gain=terms.min_gain, margin=terms.margin)


def _try(
    setting: Setting,
    smaller: Setting,
    programs: Sequence[Program],
    terms: PairTerms,
    clock: SharedBudget,
) -> Answer:
    """Look until one of the answers about ``smaller`` beside ``setting`` is shown.

    Where taking it out does not even look like a loss worth naming, no more runs are spent on it.
    """
    plan = prune_plan(terms, len(programs))
    acting = [p for p in programs if p.space.canonical(setting) != p.space.canonical(smaller)]
    if not acting:
        return "not slower"  # The two launch alike on every program.
    answer: Answer = "unmeasured"
    for look in plan.looks:
        at = replace(plan, decide_at=look)
        shown = []
        for number, program in enumerate(acting):
            left = clock.share((len(acting) - number) * (len(setting) + 1))
            shown.append(measure_pairs(setting, smaller, program, at, terms, left, PURPOSE))
        found = _answer(shown, terms.margin)
        # What an earlier look showed is not lost where the budget ends a later one.
        answer = answer if found == "unmeasured" else found
        mean = mean_gain([one.row for one in shown])
        cheap = mean is not None and mean.gain > -terms.min_gain
        if answer != "open" or cheap or any(one.cut_short for one in shown):
            break
    return answer


def _answer(shown: Sequence[PairsOutcome], margin: float) -> Answer:
    rows = [one.row for one in shown]
    if any(r.verdict == "failed" or (r.hi is not None and r.hi < 0) for r in rows):
        return "needed"
    mean = mean_gain(rows)
    if mean is None:
        return "unmeasured"
    if mean.hi < 0:
        return "needed"
    return "not slower" if mean.lo > -margin else "open"
