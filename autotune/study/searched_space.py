"""The part of a study's space that is searched, once it is known whether its operations commute."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import Setting, Space
from autotune.space.commutativity import (
    commutative_levels,
    commutative_values,
    for_any_operation,
)
from autotune.study.budget import Budget, SearchPlan
from autotune.study.evaluator import Bench, Evaluator
from autotune.study.events import Watcher
from autotune.study.operations import allows, first_known, remarks_on
from autotune.study.run_history import WARMUP, RunHistory


def searched_space(
    space: Space,
    plan: SearchPlan,
    evaluator: Evaluator,
    watch: Watcher,
    cheap: RunHistory | None = None,
) -> tuple[Space, bool]:
    """The part of ``space`` that is searched, and whether a warm-up was made to know it.

    Levels that need operations which commute are in it only if the program has no others; the
    first warm-up of the study shows it. ``cheap`` is the history of cheap runs, which have a part
    of the budget. Raises UsageError if no parameter is left, and as
    :class:`~autotune.study.evaluator.Bench` if the default does not run.
    """
    history = evaluator.history
    if not commutative_levels(space):
        return space, False
    warm = first_known(history) is None
    if warm:
        evaluator.budget = Budget(history, plan.budget_s, plan.max_runs, cheap)
        Bench(evaluator, plan, evaluator.budget).run_default(WARMUP)
    notes = remarks_on(space, history)
    for note in notes:
        watch(note)
    if allows(first_known(history)):
        return space, warm
    left = for_any_operation(space)
    if len(left) == 0:
        raise UsageError(
            "; ".join(note.words for note in notes)
            + f".\nSpace {space.name} has nothing else; choose another (--space)",
            code="space.commutative",
        )
    return left, warm


def allowed_starts(
    starts: Iterable[Setting], space: Space, searched: Space, watch: Watcher
) -> list[Setting]:
    """Those of the settings to try first that the ``searched`` part of the space allows; the
    watcher is told of the others."""
    allowed = []
    for start in starts:
        if searched is space or not commutative_values(start):
            allowed.append(start)
            continue
        words = f"not tried first, because it may give wrong results: {start.key}"
        watch(Note("operations.start", words, {"setting": start.to_json()}))
    return allowed
