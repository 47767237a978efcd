"""``autotune.compare_libraries``: one program under two MPI libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from autotune.api.compare import SettingLike, comparison_request
from autotune.api.keywords import speaks_python
from autotune.api.library_targets import compared_targets
from autotune.api.options import (
    Budget,
    Lines,
    SpaceLike,
    StoreLike,
    TargetOptions,
    open_store,
    seconds_of,
    space_of,
    target_request,
)
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import compare_settings
from autotune.errors import UsageError
from autotune.measurement.events import Watcher
from autotune.measurement.other_library import OtherLibrary


@speaks_python
def compare_libraries(
    first: str,
    second: str,
    program: Sequence[str] | None = None,
    *,
    settings: tuple[SettingLike, SettingLike] = ("default", "default"),
    second_program: str | None = None,
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
    """Compare a program under the MPI library ``second`` with the same one under ``first``.

    Both are named as in ``mpi`` of a target.  ``settings`` are those under the first and the second
    library; ``second_program`` is the program's build for the second.  All else is as in
    :func:`autotune.compare`; of the outcome, ``faster`` is the side that is faster ("a" or "b").

    Raises UsageError for a wrong request, WorkError if the program does not run under ``first``,
    BudgetTooSmall if the budget does not allow one pair.
    """
    watch = watch or Lines()
    tell = watch
    if "mpi" in target:
        raise UsageError(
            "mpi= names one library; the two libraries are the first two arguments",
            code="mpi.argument",
        )
    targets = compared_targets(
        target_request(program, target),
        (first, second),
        second_program,
        tell,
    )
    with open_store(store) as database:
        request = comparison_request(
            *settings,
            targets[0],
            space_of(targets[0], space),
            database,
            other=OtherLibrary(targets[1], space_of(targets[1], space)),
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
