"""``autotune search``: the command, its progress and result on a terminal, and its interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autotune.cli import completion
from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.errors import UsageError
from autotune.files import check_writable
from autotune.strategies import names
from autotune.study.request import DEFAULT_TRIALS
from autotune.terminal.command_line import command_line, given, this_command
from autotune.terminal.render import console, error_console, to_stderr, write_json
from autotune.wording import parse_duration
from runner.files.paths import is_file

if TYPE_CHECKING:
    from autotune.api.search import Search
    from autotune.study.request import SearchRequest
    from autotune.study.result import Result
    from autotune.study.tried_layouts import TriedLayout
    from autotune.terminal.follow_up import FollowUp
    from autotune.terminal.progress import Progress


SEARCH = "Search"
WORKERS = "Several workers"


def search(
    program: o.Program = None,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    strategy: Annotated[
        str,
        opt(
            "--strategy S",
            f"Search strategy: {', '.join(names())} (docs/explanation/strategies.md).",
            SEARCH,
            autocompletion=completion.strategies,
        ),
    ] = "auto",
    space: Annotated[
        str | None,
        opt(
            "--space NAME|FILE",
            "Parameter space to search: name or file; join several with +. Default: that "
            "of the MPI library.",
            SEARCH,
            autocompletion=completion.spaces,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        opt(
            "--trials N",
            "Number of settings to try, the default not counted. Default: "
            f"{DEFAULT_TRIALS}; no limit with --budget or --runs.",
            SEARCH,
            min=1,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        opt(
            "--budget TIME",
            "Machine time for search and proof together, for example 90s, 10m or 2h. "
            "Default: no limit.",
            SEARCH,
        ),
    ] = None,
    runs: o.MaxRuns = None,
    seed: Annotated[
        int,
        opt(
            "--seed N",
            "Seed of the random generator; the same seed proposes the same settings.",
            min=0,
        ),
    ] = 0,
    preset: Annotated[
        str | None,
        opt(
            "--preset NAME",
            "Named set of strategy options; thesis (for ga) is the only one.",
            SEARCH,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        opt(
            "-O --option NAME=VALUE",
            "Option of the strategy, for example -O population=20 "
            "(docs/explanation/strategies.md). May be repeated.",
            SEARCH,
        ),
    ] = None,
    min_gain: Annotated[
        float,
        opt(
            "--min-gain PERCENT", "Smallest gain that counts as a gain, in percent.", min=0, max=50
        ),
    ] = 2.0,
    pareto: Annotated[
        bool,
        opt(
            "--pareto",
            "Show time and core-seconds of each layout that was tried (ranks x threads), from the "
            "stored runs; for a space that varies them, such as hybrid.",
        ),
    ] = False,
    remeasure: Annotated[
        bool, opt("--remeasure", "Measure everything anew; take no runs from other studies.")
    ] = False,
    fidelity: Annotated[
        bool,
        opt(
            "--fidelity",
            "Run each setting first in the cheap form of the input that the application's file "
            "declares; those that show no gain there are not run in full. The proof is "
            "made of full runs only.",
            SEARCH,
        ),
    ] = False,
    start: Annotated[
        list[str] | None,
        opt(
            "--start SETTING",
            "Setting to try first: name=value,..., @FILE, or study:ID, also of a study under "
            "another MPI library, whose answer is then written in this one's words. May be "
            "repeated.",
            SEARCH,
        ),
    ] = None,
    features: Annotated[
        Path | None,
        opt(
            "--features FILE",
            "Warm start: file written by autotune features; the settings that the model "
            "predicts for it are tried first.",
            SEARCH,
        ),
    ] = None,
    join: Annotated[
        bool,
        opt(
            "--join",
            "Let other workers take part (autotune worker STUDY). Trials are shared; each "
            "worker compares settings on its own machine; one worker runs the proof.",
            WORKERS,
        ),
    ] = False,
    scheduler: Annotated[
        str | None,
        opt(
            "--scheduler S",
            "Start workers as jobs of a scheduler (local or slurm) instead of measuring in "
            "this process.",
            WORKERS,
        ),
    ] = None,
    workers: Annotated[
        int, opt("--workers N", "Number of workers that --scheduler starts.", WORKERS, min=1)
    ] = 1,
    nodes_per_trial: Annotated[
        int,
        opt(
            "--nodes-per-trial N",
            "Number of nodes of each worker; every trial uses all of them.",
            WORKERS,
            min=1,
        ),
    ] = 1,
    walltime: Annotated[
        str | None,
        opt(
            "--walltime TIME",
            "Time limit of each worker's job, for example 30m or 2h. Default: that of the "
            "scheduler.",
            WORKERS,
        ),
    ] = None,
    job_option: Annotated[
        list[str] | None,
        opt(
            "--job-option WORD",
            "Option passed on to the scheduler, for example "
            "--job-option=--partition=debug. May be repeated.",
            WORKERS,
        ),
    ] = None,
    params_file: Annotated[
        Path | None,
        opt(
            "--params-file FILE",
            "File for the proven setting, for mpirun --tune. Default: "
            "autotune-APP-STUDY.conf in this directory.",
        ),
    ] = None,
    cluster: o.ClusterName = "local",
    mpi: o.Libraries = None,
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
    quiet: o.Quiet = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Search for a better setting of a program and prove it against the default.

    The same command continues an interrupted search, and prints the stored result of a finished
    one.
    """
    from autotune.api.search import Search
    from autotune.api.target import silent_say
    from autotune.api.workers import Crew, work
    from autotune.store import Store
    from autotune.study.request import SearchRequest
    from autotune.study.tried_layouts import require_layouts
    from autotune.targets.request import TargetRequest

    seconds = None if budget is None else parse_duration(budget)
    libraries = tuple(mpi or ())
    asked = SearchRequest(
        target=TargetRequest(
            program, app, input_name, ranks, cluster, libraries[0] if libraries else None, metric,
            verify, timeout, clean_env, "search", metric_choice, stdin, metric_rate,
            o.command_words(before), fresh_dir,
            commutative_only,
            verify_absent=verify_absent, exit_codes=exit_codes,
        ),
        libraries=libraries[1:],
        space=space,
        strategy=strategy,
        preset=preset,
        options=_pairs(option),
        seed=seed,
        trials=trials,
        budget_s=seconds,
        max_runs=runs,
        min_gain=min_gain / 100,
        guard=guard,
        remeasure=remeasure,
        starts=tuple(start or ()),
        features=None if features is None else str(features),
        params_file=None if params_file is None else str(params_file),
        fidelity=fidelity,
    )  # fmt: skip
    for place in (None if json_out == "-" else json_out, params_file):
        if place is not None:
            check_writable(Path(place))
    with Store.open(store) as opened:
        shared = join or scheduler is not None
        progress = watch(asked, json_out, quiet)
        say = silent_say if quiet else to_stderr
        begun = Search(asked, opened, join=shared, watch=progress, say=say)
        if pareto:
            require_layouts(begun.request.space)
        if scheduler is None:
            run_search(begun, progress, json_out, pareto=pareto)
            return
        time_s = None if walltime is None else parse_duration(walltime)
        crew = Crew(scheduler, workers, nodes_per_trial, time_s, tuple(job_option or []))
        stored = begun.followed_answer()
        result = work(crew, begun, store) if stored is None else stored
        rows = begun.layouts(result) if pareto else None
        finish(result, json_out, next_commands=_next(begun, result), layouts=rows)


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(
                f"-O {word!r} is not understood; expected NAME=VALUE, such as -O population=20",
                code="strategy.option_syntax",
            )
        pairs[name.strip()] = value.strip()
    return pairs


def watch(asked: SearchRequest, json_out: str | None, quiet: bool = False) -> Progress:
    """The progress display of a search."""
    from autotune.terminal.progress import Progress

    return Progress(asked.plan.trials, asked.budget_s, quiet or json_out == "-")


def run_search(
    search: Search,
    progress: Progress,
    json_out: str | None,
    command: bool = True,
    pareto: bool = False,
) -> None:
    """Measure to the end and print the result; a stored result is printed without measuring.

    ``progress`` is the watcher of the search.  ``command``: this command is a search, which can be
    repeated with other options.  ``pareto``: show the layouts that were tried.
    """
    from autotune.api.search import SearchInterrupted
    from autotune.api.workers import ended_elsewhere

    stored = search.answer()
    if stored is not None:
        told = "This study is finished; its stored result:"
        following = _next(search, stored) if command else ()
        finish(stored, json_out, told, following, search.layouts(stored) if pareto else None)
        return
    try:
        result = search.run(progress)
    except SearchInterrupted as stop:
        _interrupted(stop.result, json_out)
        raise
    if result is not None:
        following = _next(search, result) if command else ()
        finish(result, json_out, "", following, search.layouts(result) if pareto else None)
        return
    if json_out:
        write_json(ended_elsewhere(search.study.hash), json_out)
    error_console().print(
        "The search is over and another worker runs the proof now; follow it with: "
        f"autotune status {search.study.hash[:12]}",
        markup=False,
        soft_wrap=True,
    )


def _next(search: Search, result: Result) -> list[FollowUp]:
    """The commands that come after this result."""
    from autotune.publish.plan import publish_options
    from autotune.terminal.follow_up import follow_up

    publish: list[str] | None = None
    if result.status == "recommended":
        target = search.request.target_of(result.recommended)
        files = [word for word in (search.asked.space or "").split("+") if is_file(word)]
        place = (target.cluster, target.library, search.store)
        publish = publish_options(result.study, *place, files)
    return follow_up(result, publish)


def finish(
    result: Result,
    json_out: str | None,
    note: str = "",
    next_commands: Sequence[FollowUp] = (),
    layouts: list[TriedLayout] | None = None,
) -> None:
    """Print a result and the layouts, and write them as JSON if asked for."""
    from autotune.terminal.layouts import print_layouts
    from autotune.terminal.outcome import print_result

    if json_out:
        rows = {} if layouts is None else {"layouts": [row.to_json() for row in layouts]}
        write_json(result.to_json() | rows, json_out)
    if json_out != "-":
        if note:
            console().print(note, markup=False)
        print_result(result, next_commands)
        if layouts is not None:
            print_layouts(layouts, result.metric)


def _interrupted(result: Result, json_out: str | None) -> None:
    if json_out:
        write_json(result.to_json(), json_out)
    out = error_console()
    out.print(
        f"\nInterrupted. Every finished run is stored ({result.search_runs} search "
        f"runs, {result.confirmation_runs} confirmation runs). Continue with:\n  "
        f"{this_command()}\nSee what was measured:\n  "
        f"{command_line('show', result.study, *given(['--store']))}",
        markup=False,
    )
