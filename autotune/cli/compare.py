"""``autotune compare``: two settings of a program, or one program under two MPI libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from autotune.cli import options as o
from autotune.cli.options import TARGET, opt
from autotune.errors import UsageError, WorkError
from autotune.stats import LOOKS
from autotune.terminal.command_line import program_words
from autotune.terminal.render import error_console, to_stderr, write_json
from autotune.wording import parse_duration


def compare(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="Reference setting: default, name=value,..., @FILE or study:ID. With two "
            "libraries: setting of the first. Default: the default of each library.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="Setting that is compared with A, in the same form.",
            show_default=False,
        ),
    ] = None,
    program: o.Program = None,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    budget: o.Budget = None,
    runs: o.MaxRuns = None,
    pairs: Annotated[
        int | None,
        opt(
            "--pairs N",
            "Measure exactly N pairs and test once. Default: a sequential test after "
            f"{', '.join(map(str, LOOKS))} pairs.",
            min=6,
        ),
    ] = None,
    min_gain: Annotated[
        float,
        opt(
            "--min-gain PERCENT", "Smallest gain that counts as a gain, in percent.", min=0, max=50
        ),
    ] = 2.0,
    seed: Annotated[
        int, opt("--seed N", "Seed of the random generator (order within the pairs).", min=0)
    ] = 0,
    space: o.SpaceName = None,
    cluster: o.ClusterName = "local",
    mpi: Annotated[
        list[str] | None,
        opt(
            "--mpi P",
            "MPI library: family and version (openmpi-5.0, mpich) or installation "
            "directory. Default: the first found. Given twice: compare the program under the "
            "second library with the program under the first.",
            TARGET,
        ),
    ] = None,
    second_program: Annotated[
        str | None,
        opt(
            "--program-b PATH",
            "Build of the program for the second --mpi; the arguments are the same. Default: "
            "one program for both.",
            TARGET,
        ),
    ] = None,
    metric: o.Metric = None,
    metric_rate: o.Rate = None,
    metric_choice: o.Choice = None,
    verify: o.Verify = None,
    verify_absent: o.VerifyAbsent = None,
    exit_codes: o.ExitCodes = None,
    stdin: o.Stdin = None,
    before: o.Before = None,
    fresh_dir: o.FreshDir = None,
    timeout: o.Timeout = None,
    clean_env: o.CleanEnv = False,
    commutative_only: o.CommutativeOnly = False,
    guard: o.Guard = True,
    remeasure: Annotated[
        bool,
        opt("--remeasure", "Measure new pairs; do not use the stored ones of this comparison."),
    ] = False,
    quiet: o.Quiet = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Compare two settings of a program, or two MPI libraries, by interleaved pairs of runs.

    The comparison ends when the sequential test decides or the budget is spent.
    """
    from autotune.api.compare import comparison_request
    from autotune.api.figures import with_figure
    from autotune.api.library_targets import compared_targets
    from autotune.api.target import find_target, silent_say
    from autotune.store import Store
    from autotune.study.comparison import compare_settings, library_titles
    from autotune.study.other_library import OtherLibrary
    from autotune.targets.request import AUTO, TargetRequest
    from autotune.terminal.outcome import print_comparison
    from autotune.terminal.progress import Progress

    settings, program = _words(first, second, program)
    libraries = list(mpi or ())
    say = silent_say if quiet else to_stderr
    words = TargetRequest(
        program,
        app,
        input_name,
        ranks,
        cluster,
        libraries[0] if libraries else None,
        metric,
        verify,
        timeout,
        clean_env,
        "compare A B" if len(libraries) < 2 else "compare --mpi P --mpi P",
        metric_choice,
        stdin,
        metric_rate,
        o.command_words(before),
        fresh_dir,
        commutative_only,
        verify_absent=verify_absent,
        exit_codes=exit_codes,
    )
    if metric == AUTO:
        with Store.open(store) as opened:
            words = with_figure(words, opened, say, guard=guard)
    other = None
    if len(libraries) > 1:
        target, second_target = compared_targets(words, libraries, second_program, say)
        other = OtherLibrary(second_target, second_target.space(space))
        a, b = settings or ("default", "default")
    else:
        a, b = _required(settings, second_program)
        target = find_target(words, say)
    budget_s = None if budget is None else parse_duration(budget)
    hidden = quiet or json_out == "-"
    with Store.open(store) as opened, Progress(None, budget_s, hidden) as progress:
        request = comparison_request(
            a,
            b,
            target,
            target.space(space),
            opened,
            other=other,
            pairs=pairs,
            min_gain=min_gain / 100,
            budget_s=budget_s,
            max_runs=runs,
            seed=seed,
            guard=guard,
            remeasure=remeasure,
            watch=progress,
        )
        try:
            outcome = compare_settings(request, opened)
        except KeyboardInterrupt:
            said = "\nInterrupted. Every finished run is stored; the same command continues."
            error_console().print(said, markup=False)
            raise
    data: dict[str, Any] = {
        "schema": "autotune-comparison-1",
        "a": request.first.to_json(),
        "b": request.second.to_json(),
        **outcome.to_json(),
    }
    if json_out:
        write_json(data, json_out)
    if outcome.failed:
        named = f"B is {request.second.key}"
        if outcome.libraries is not None:
            named += f" under {library_titles(outcome.libraries)['b']}"
        raise WorkError(f"{outcome.failed}.\n{named}. Nothing was compared", code="compare.fails")
    if json_out != "-":
        print_comparison(request.first.key, request.second.key, data, command=True)


def _words(
    first: str | None, second: str | None, program: Sequence[str] | None
) -> tuple[tuple[str, str] | None, list[str]]:
    """Settings (None: none) and program; words after ``--`` belong to the program in any case.

    Raises UsageError for one setting alone.
    """
    given = [word for word in (first, second) if word is not None] + list(program or ())
    before = len(given) - program_words()
    if before == 1:
        raise UsageError(
            f"compare was given one setting ({given[0]}); expected two, A and B, or none if two "
            "libraries are compared",
            code="compare.settings",
        )
    if before == 0:
        return None, given
    return (given[0], given[1]), given[2:]


def _required(settings: tuple[str, str] | None, second_program: str | None) -> tuple[str, str]:
    """The settings of a comparison under one library; raises UsageError if there are none."""
    if second_program is not None:
        raise UsageError(
            "--program-b is the program's build for a second library; expected --mpi twice",
            code="compare.settings",
        )
    if settings is None:
        raise UsageError(
            "compare needs two settings or two libraries; expected one of\n"
            "  autotune compare A B ...\n"
            "  autotune compare --mpi P --mpi P ...",
            code="compare.settings",
        )
    return settings
