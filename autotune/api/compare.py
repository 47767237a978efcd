"""``autotune.compare`` and ``autotune.noise``: the proof, and the gain that it can resolve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from autotune.api.keywords import speaks_python
from autotune.api.options import (
    Budget,
    Lines,
    Program,
    SpaceLike,
    StoreLike,
    TargetOptions,
    open_store,
    seconds_of,
    space_of,
    target_of,
)
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.noise import NoiseReport, measure_noise
from autotune.comparison.paired_comparison import ComparisonRequest, compare_settings
from autotune.errors import UsageError
from autotune.measurement.events import Watcher
from autotune.measurement.other_library import OtherLibrary
from autotune.space import Setting, Space
from autotune.stats import LookPlan
from autotune.store import Store
from autotune.targets.setting_syntax import read_settings
from autotune.targets.target import Target

SettingLike = str | Mapping[str, int | float | str]
"""A setting: ``default``, ``name=value,...``, ``@file``, ``study:ID``, or values by name."""


def comparison_request(
    first: SettingLike,
    second: SettingLike,
    target: Target,
    space: Space,
    store: Store,
    *,
    pairs: int | None,
    min_gain: float,
    budget_s: float | None,
    max_runs: int | None,
    seed: int,
    guard: bool,
    remeasure: bool,
    watch: Watcher,
    other: OtherLibrary | None = None,
) -> ComparisonRequest:
    """The request that compares two settings, given in any form of :data:`SettingLike`.

    ``other`` is B's side if B runs under another library than ``target``'s.  Raises UsageError for
    a setting that cannot be used, and for two equal settings under one library.
    """
    texts = [one if isinstance(one, str) else Setting(one).key for one in (first, second)]
    plan = (
        LookPlan(min_gain=min_gain)
        if pairs is None
        else LookPlan.single_look(pairs, min_gain=min_gain)
    )
    if other is None:
        space, [a, b] = read_settings(texts, space, target.library, store)
        if a == b:
            raise UsageError(
                f"A and B are the same setting ({a.key}); expected two different settings",
                code="compare.same_setting",
            )
    else:
        space, [a] = read_settings(texts[:1], space, target.library, store)
        own, [b] = read_settings(texts[1:], other.space, other.target.library, store)
        other = replace(other, space=own)
        # Neither library is the default of the other: a loss is an answer, too.
        plan = replace(plan, symmetric=True)
    return ComparisonRequest(
        target=target,
        space=space,
        first=a,
        second=b,
        plan=plan,
        budget_s=budget_s,
        max_runs=max_runs,
        seed=seed,
        guard=guard,
        remeasure=remeasure,
        watch=watch,
        ends_if_same=other is None,
        other=other,
    )


@speaks_python
def compare(
    first: SettingLike,
    second: SettingLike,
    program: Program = None,
    *,
    space: SpaceLike = None,
    budget: Budget = None,
    runs: int | None = None,
    pairs: int | None = None,
    min_gain: float = 0.02,
    seed: int = 0,
    guard: bool = True,
    remeasure: bool = False,
    store: StoreLike = None,
    watch: Watcher | None = None,
    **target: Unpack[TargetOptions],
) -> ComparisonOutcome:
    """Compare ``second`` with ``first`` on interleaved pairs, until decided or out of budget.

    A setting is ``"default"``, ``"name=value,..."``, ``"@file"``, ``"study:ID"``, or values by
    name.  ``pairs`` measures exactly so many pairs with one look.  ``budget`` is machine time
    (seconds, or "10m"), ``runs`` the largest number of launches.  ``min_gain`` is a fraction.

    The same call continues an interrupted comparison.  If ``second`` does not run, ``verdict`` of
    the outcome is ``failed``.  Raises UsageError for a wrong request, WorkError if ``first`` does
    not run, BudgetTooSmall if the budget does not allow one pair.
    """
    watch = watch or Lines()
    with open_store(store) as database:
        program_target = target_of(program, target, watch, database, guard)
        request = comparison_request(
            first,
            second,
            program_target,
            space_of(program_target, space),
            database,
            pairs=pairs,
            min_gain=min_gain,
            budget_s=seconds_of(budget),
            max_runs=runs,
            seed=seed,
            guard=guard,
            remeasure=remeasure,
            watch=watch,
        )
        return compare_settings(request, database)


@speaks_python
def noise(
    program: Program = None,
    *,
    runs: int = 20,
    budget: Budget = None,
    guard: bool = True,
    store: StoreLike = None,
    watch: Watcher | None = None,
    **target: Unpack[TargetOptions],
) -> NoiseReport:
    """Run the default ``runs`` times, and compute how large a gain must be to be seen.

    ``budget`` is machine time.  Raises UsageError for a wrong request, WorkError if the default
    does not run, BudgetTooSmall if the budget does not allow enough runs.
    """
    watch = watch or Lines()
    with open_store(store) as database:
        program_target = target_of(program, target, watch, database, guard)
        return measure_noise(
            program_target,
            program_target.space(),
            database,
            runs=runs,
            budget_s=seconds_of(budget),
            guard=guard,
            watch=watch,
        )
