"""``autotune.tune``: a search from Python, the same as ``autotune search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from autotune.api.options import (
    Budget,
    Lines,
    Program,
    SearchOptions,
    SpaceLike,
    StoreLike,
    one_library,
    opened,
    seconds_of,
    target_of,
    target_request,
)
from autotune.api.search import Search
from autotune.api.study import Study
from autotune.space import Space
from autotune.strategies import OptionValue, Strategy
from autotune.study.events import Watcher
from autotune.study.request import SearchRequest
from autotune.targets.metric import Objective
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target


def tune(
    program: Program = None,
    *,
    space: SpaceLike = None,
    strategy: str | type[Strategy] = "auto",
    preset: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    objective: Objective | None = None,
    budget: Budget = None,
    trials: int | None = None,
    runs: int | None = None,
    min_gain: float = 0.02,
    seed: int = 0,
    starts: Sequence[str] = (),
    features: str | Path | None = None,
    params_file: str | Path | None = None,
    guard: bool = True,
    remeasure: bool = False,
    fidelity: bool = False,
    store: StoreLike = None,
    watch: Watcher | None = None,
    **options_of_target: Unpack[SearchOptions],
) -> Study:
    """Search for a better setting of a program and prove it against the default.

    ``program`` is a list of words; ``app=`` names a known application instead.  The other target
    options are those of :class:`~autotune.api.options.SearchOptions`; with ``mpi=[A, B]`` the
    MPI library is a parameter, and A is that of the default.  ``strategy`` is a name or a
    subclass of :class:`autotune.Strategy`, with ``preset`` and ``options`` by name.  ``objective``
    is a function of a run that returns the figure to minimise, a positive number, in place of the
    time.

    ``budget`` is machine time (seconds, or "10m"), ``trials`` the number of settings to try,
    ``runs`` the largest number of launches.  Without any of them 100 settings are tried.
    ``min_gain`` is a fraction.  ``starts`` are settings to try first, as ``--start`` takes them.
    ``features`` is a file of ``autotune features``, for a warm start
    with predicted settings.  ``params_file`` is the file for a proven setting; without it no file
    is written.  ``fidelity``: run settings first in the cheap form of the input that the
    application's file declares, and keep those that show no gain there from full runs.
    ``watch`` is called with the study's events; by default they are printed as lines
    on standard error.

    The same call continues an interrupted search, and returns the stored result of a finished one.

    Raises UsageError if the request is wrong, WorkError if the search fails (the default does not
    run, the machine is too busy), BudgetTooSmall if the budget allows no runs, SearchInterrupted (a
    KeyboardInterrupt) if the user stops it.
    """
    watch = watch or Lines()
    target, libraries = one_library(options_of_target)
    found = program if isinstance(program, Target) else None
    asked = TargetRequest()
    if found is not None:
        target_of(found, target, watch)  # Refuses further options.
    else:
        asked = target_request(program, target)  # type: ignore[arg-type]
    request = SearchRequest.of(
        "tune()",
        target=asked,
        libraries=libraries,
        space=None if space is None or isinstance(space, Space) else str(space),
        strategy=strategy if isinstance(strategy, str) else strategy.name,
        preset=preset,
        options=dict(options or {}),
        seed=seed,
        trials=trials,
        budget_s=seconds_of(budget),
        max_runs=runs,
        min_gain=min_gain,
        guard=guard,
        remeasure=remeasure,
        fidelity=fidelity,
        starts=tuple(starts),
        features=None if features is None else str(features),
        params_file=None if params_file is None else str(params_file),
    )
    if objective is not None:
        found = replace(found or target_of(program, target, watch), objective=objective)
    with opened(store) as database:
        search = Search(
            request,
            database,
            watch=watch,
            say=watch,
            target=found,
            space=space if isinstance(space, Space) else None,
            strategy=None if isinstance(strategy, str) else strategy,
            writes_unasked=False,
        )
        if search.answer() is None:
            search.run()
        return Study(search.study.hash, store)
