"""``autotune.compare`` and ``autotune.noise``: the proof, and what it can resolve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from autotune.api.options import (
    Budget,
    Lines,
    Program,
    SpaceLike,
    StoreLike,
    TargetOptions,
    opened,
    seconds_of,
    space_of,
    target_of,
)
from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.stats import LookPlan
from autotune.store import Store
from autotune.study.comparison import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.events import Watcher
from autotune.study.noise import NoiseReport, measure_noise
from autotune.study.setting_syntax import read_settings
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
) -> ComparisonRequest:
    """Two settings as they were said, ready to be compared.

    Raises UsageError for a setting that cannot be used, and for two that are the same.
    """
    texts = [one if isinstance(one, str) else Setting(one).key for one in (first, second)]
    space, [one, other] = read_settings(texts, space, target.library, store)
    if one == other:
        raise UsageError(
            f"A and B are the same setting ({one.key}); expected two different settings"
        )
    plan = (
        LookPlan(min_gain=min_gain) if pairs is None else LookPlan.fixed(pairs, min_gain=min_gain)
    )
    return ComparisonRequest(
        target=target,
        space=space,
        first=one,
        second=other,
        plan=plan,
        budget_s=budget_s,
        max_runs=max_runs,
        seed=seed,
        guard=guard,
        remeasure=remeasure,
        watch=watch,
        ends_if_same=True,
    )


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
    name.  ``pairs`` asks for exactly so many and one look; ``budget`` is machine time (seconds, or
    "10m"), ``runs`` the launches of all of it; ``min_gain`` is a fraction.

    The same call goes on where it was stopped.  Where ``second`` does not run, ``verdict`` of the
    outcome is ``failed``.  Raises UsageError for what is wrong with the request, WorkError where
    ``first`` does not run, BudgetTooSmall where the budget held not one pair.
    """
    watch = watch or Lines()
    found = target_of(program, target, watch)
    with opened(store) as database:
        request = comparison_request(
            first,
            second,
            found,
            space_of(found, space),
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
    """Run the default ``runs`` times against itself: how large must a gain be to be seen?

    ``budget`` is machine time.  Raises UsageError for what is wrong with the request, WorkError
    where the default does not run, BudgetTooSmall where too few runs fit in.
    """
    watch = watch or Lines()
    found = target_of(program, target, watch)
    with opened(store) as database:
        return measure_noise(
            found,
            found.space(),
            database,
            runs=runs,
            budget_s=seconds_of(budget),
            guard=guard,
            watch=watch,
        )
