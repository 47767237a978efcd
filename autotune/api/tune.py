"""``autotune.tune``: a search from Python, the same as ``autotune search``."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from autotune.api.keywords import speaks_python
from autotune.api.options import (
    Budget,
    Lines,
    Program,
    SearchOptions,
    SpaceLike,
    StoreLike,
    open_store,
    refuse_options,
    search_parts,
    seconds_of,
    target_of,
    target_request,
)
from autotune.api.search import begin_search
from autotune.api.study import Study
from autotune.measurement.events import Watcher
from autotune.space import Space
from autotune.strategies import Strategy
from autotune.study.study_request import SearchRequest
from autotune.targets.metric import Objective
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target


@speaks_python
def tune(
    program: Program = None,
    *,
    space: SpaceLike = None,
    strategy: str | type[Strategy] = "auto",
    objective: Objective | None = None,
    budget: Budget = None,
    runs: int | None = None,
    store: StoreLike = None,
    watch: Watcher | None = None,
    **options: Unpack[SearchOptions],
) -> Study:
    """Search for a better setting of a program and prove it against the default.

    ``program`` is a list of words; ``app=`` names a known application instead.  The other options
    are those of :class:`~autotune.api.options.SearchOptions`; with ``mpi=[A, B]`` the MPI library
    is a parameter, and A is that of the default.  ``strategy`` is a name or a subclass of
    :class:`autotune.Strategy`, with ``preset`` and ``options`` by name.  ``objective`` is a
    function of a run that returns the figure to minimise, a positive number, in place of the time.

    ``budget`` is machine time (seconds, or "10m"), ``trials`` the number of settings to try,
    ``runs`` the largest number of launches, at least 32: the default takes 3, the search begins
    with 5, and the proof takes 24 for one finalist and 12 more for each further one.  Without any
    of them 100 settings are tried.
    ``min_gain`` is a fraction.  ``starts`` are settings to try first, as ``--start`` takes them.
    Without ``params_file`` no file is written for a proven setting.  ``watch`` is called with the
    study's events; by default they are printed as lines on standard error.

    The same call continues an interrupted search, and returns the stored result of a finished one.

    Raises UsageError if the request is wrong, WorkError if the search fails (the default does not
    run, the machine is too busy), BudgetTooSmall if the budget allows no runs, SearchInterrupted (a
    KeyboardInterrupt) if the user stops it.
    """
    watch = watch or Lines()
    fields, target = search_parts(options)
    program_target = program if isinstance(program, Target) else None
    program_request = TargetRequest()
    if program_target is not None:
        refuse_options(target)
    else:
        program_request = target_request(program, target)  # type: ignore[arg-type]
    request = SearchRequest.of(
        "tune()",
        target=program_request,
        space=None if space is None or isinstance(space, Space) else str(space),
        strategy=strategy if isinstance(strategy, str) else strategy.name,
        budget_s=seconds_of(budget),
        max_runs=runs,
        **fields,
    )
    with open_store(store) as database:
        if objective is not None:
            program_target = program_target or target_of(
                program, target, watch, database, request.guard
            )
            program_target = replace(program_target, objective=objective)
        search = begin_search(
            request,
            database,
            watch=watch,
            say=watch,
            target=program_target,
            space=space if isinstance(space, Space) else None,
            strategy=None if isinstance(strategy, str) else strategy,
            writes_default_file=False,
        )
        if search.answer() is None:
            search.run()
        return Study(search.study.hash, store)
