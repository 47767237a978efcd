"""Pruning of a class-wide setting: parameters not shown to act are removed before the proof.

Two errors are possible. Removing an active parameter only loses gain, because the smaller setting
is proven against the default on fresh runs. An inactive parameter may stay. Then every user would
set it without evidence, and it may slow the next program. The second error is worse, so a parameter
stays only if the programs are shown to be slower without it.

Each comparison runs on every program. So many parameters are halved: a half that is not shown to
act is removed by one comparison, and any other half is divided again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from autotune.anova.classwide import mean_gain
from autotune.anova.paired_runs import (
    ClassProgram,
    PairsOutcome,
    PairTerms,
    SharedBudget,
    measure_pairs,
)
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import LookPlan
from autotune.study.pruning import SINGLES, Group, without

ALPHA = 0.05
PURPOSE = "classwide pruning"
Answer = Literal["needed", "not slower", "open", "unmeasured"]
REMOVABLE = ("not slower", "open")
"""Answers for which a parameter is removed."""


@dataclass(frozen=True)
class ClassPruning:
    """``setting`` is the pruned setting.

    ``without``: removed parameters; ``unclear``: those among them shown neither to act nor to cost
    less than the margin. ``unproven``: parameters that stayed without being shown to act, because
    the budget was spent or because nothing can be launched without them.
    """

    setting: Setting
    without: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


def prune(
    setting: Setting,
    programs: Sequence[ClassProgram],
    terms: PairTerms,
    clock: SharedBudget | None = None,
) -> ClassPruning:
    """Remove parameters from the remaining setting, and compare on every program each time.

    Up to :data:`~autotune.study.pruning.SINGLES` parameters are tried one by one, more in halves,
    in the order of the terms.  A setting of one parameter is returned unchanged: the comparison
    with the default is the same test.
    """
    clock = clock or SharedBudget()
    answers: dict[str, Answer] = {}
    spaces = [program.space for program in programs if program.layouts is None]
    left = setting
    names = sorted(setting, key=lambda name: _rank(name, terms.prune_order))
    waiting = _parts(tuple(names))
    while waiting and len(left) > 1:
        # A parameter has already left if it has no effect without a removed one.
        group = tuple(name for name in waiting.pop(0) if name in left)
        smaller = _smaller(left, group, spaces) if group else None
        answer: Answer = "unmeasured"
        if smaller is not None:
            words = f"{len(left)} parameters are left; without {', '.join(group)}"
            terms.say(Note("classwide.without", words, {"parameters": list(group)}))
            answer = _try(left, smaller, programs, terms, clock)
        if smaller is not None and answer in REMOVABLE:
            left = smaller
        elif len(group) > 1 and (smaller is None or answer == "needed"):
            waiting[:0] = _parts(group)
            continue
        answers |= dict.fromkeys(group, answer)
    removed = tuple(name for name in names if name not in left)
    unmeasured = tuple(name for name in names if name in left and answers.get(name) == "unmeasured")
    return ClassPruning(
        left,
        removed,
        tuple(name for name in removed if answers.get(name) == "open"),
        unmeasured if len(left) > 1 else (),  # The proof itself judges a single parameter.
    )


def _parts(names: Group) -> list[Group]:
    """Single parameters if they are few, else two halves."""
    if len(names) <= SINGLES:
        return [(name,) for name in names]
    half = (len(names) + 1) // 2
    return [names[:half], names[half:]]


def _rank(name: str, order: Sequence[str]) -> int:
    """Place in the order; what it does not name comes last."""
    return order.index(name) if name in order else len(order)


def _smaller(setting: Setting, group: Group, spaces: Sequence[Space]) -> Setting | None:
    """The setting without a group; None if that is the default or cannot be launched."""
    if spaces:
        return without(setting, group, spaces)
    rest = setting.without(*group)  # A rule in words of layouts has no space of its own.
    return None if rest == DEFAULT else rest


def prune_plan(terms: PairTerms, programs: int) -> LookPlan:
    """The looks at one program for the removal of a parameter.

    Alpha is split over the programs and their mean, because each of them may keep a parameter.  The
    last look has enough pairs for an interval to exist.
    """
    comparisons = programs + 1
    least = math.ceil(math.log2(2 * comparisons / ALPHA))
    looks = terms.prune_looks if terms.prune_looks[-1] >= least else (least,)
    return LookPlan(
        looks=looks, finalists=comparisons, min_gain=terms.min_gain, margin=terms.margin
    )


def _try(
    setting: Setting,
    smaller: Setting,
    programs: Sequence[ClassProgram],
    terms: PairTerms,
    clock: SharedBudget,
) -> Answer:
    """Compare ``smaller`` with ``setting`` look by look until there is an answer.

    The looks end if removing the parameter does not even look like a loss above the margin.
    """
    plan = prune_plan(terms, len(programs))
    acting = [p for p in programs if p.own_setting(setting) != p.own_setting(smaller)]
    if not acting:
        return "not slower"  # Both settings launch alike on every program.
    answer: Answer = "unmeasured"
    for look in plan.looks:
        at = replace(plan, decide_at=look)
        outcomes = []
        for number, program in enumerate(acting):
            left = clock.share((len(acting) - number) * (len(setting) + 1))
            outcomes.append(measure_pairs(setting, smaller, program, at, terms, left, PURPOSE))
        latest = _answer(outcomes, terms.margin)
        # The answer of an earlier look stays if the budget ends a later one.
        answer = answer if latest == "unmeasured" else latest
        mean = mean_gain([one.row for one in outcomes])
        cheap = mean is not None and mean.gain > -terms.min_gain
        if answer != "open" or cheap or any(one.cut_short for one in outcomes):
            break
    return answer


def _answer(outcomes: Sequence[PairsOutcome], margin: float) -> Answer:
    rows = [one.row for one in outcomes]
    if any(r.verdict == "failed" or (r.hi is not None and r.hi < 0) for r in rows):
        return "needed"
    mean = mean_gain(rows)
    if mean is None:
        return "unmeasured"
    if mean.hi < 0:
        return "needed"
    return "not slower" if mean.lo > -margin else "open"
