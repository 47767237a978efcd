"""``autotune search``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.api.jobs import Crew, work
from autotune.api.search import Search
from autotune.cli import options as o
from autotune.cli.conducted import conduct, finish, watch
from autotune.errors import UsageError
from autotune.files import check_writable
from autotune.store import Store
from autotune.strategies import names
from autotune.study.duration import parse_duration
from autotune.study.search_request import DEFAULT_TRIALS, SearchRequest
from autotune.study.target_request import TargetRequest

SEARCH = "Search"
WORKERS = "Several workers"


def search(
    program: o.Program = None,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy", metavar="S", help=f"{', '.join(names())}.", rich_help_panel=SEARCH
        ),
    ] = "auto",
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="NAME|FILE",
            rich_help_panel=SEARCH,
            help="What may vary; several joined by +. Default: that of the MPI.",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            metavar="N",
            min=1,
            rich_help_panel=SEARCH,
            help=f"Settings to try. Default: {DEFAULT_TRIALS}; no bound with --budget or --runs.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            rich_help_panel=SEARCH,
            help="Machine time for all of it: 90s, 10m, 2h.",
        ),
    ] = None,
    runs: o.MaxRuns = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Of all random choices.")
    ] = 0,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            rich_help_panel=SEARCH,
            help="Options of the strategy by name: thesis (of ga).",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-O",
            "--option",
            metavar="NAME=VALUE",
            rich_help_panel=SEARCH,
            help="One option of the strategy; may be repeated.",
        ),
    ] = None,
    min_gain: Annotated[
        float,
        typer.Option(
            "--min-gain", metavar="PERCENT", min=0, max=50, help="The smallest gain worth naming."
        ),
    ] = 2.0,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Use nothing that other studies measured.")
    ] = False,
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            metavar="FILE",
            rich_help_panel=SEARCH,
            help="From autotune features: the settings predicted for it are tried first.",
        ),
    ] = None,
    join: Annotated[
        bool,
        typer.Option(
            "--join",
            rich_help_panel=WORKERS,
            help="Other workers take part (autotune worker STUDY): trials are shared, each worker "
            "compares on its own place, one of them proves.",
        ),
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="S",
            rich_help_panel=WORKERS,
            help="Start workers as jobs instead of measuring here: local or slurm.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", metavar="N", min=1, rich_help_panel=WORKERS, help="How many of them."
        ),
    ] = 1,
    nodes_per_trial: Annotated[
        int,
        typer.Option(
            "--nodes-per-trial", metavar="N", min=1, rich_help_panel=WORKERS, help="For each."
        ),
    ] = 1,
    walltime: Annotated[
        str | None,
        typer.Option("--walltime", metavar="TIME", rich_help_panel=WORKERS, help="Of a job: 2h."),
    ] = None,
    job_option: Annotated[
        list[str] | None,
        typer.Option(
            "--job-option",
            metavar="WORD",
            rich_help_panel=WORKERS,
            help="For the scheduler, such as --partition=p; may be repeated.",
        ),
    ] = None,
    params_file: Annotated[
        Path | None,
        typer.Option(
            "--params-file",
            metavar="FILE",
            help="Where a proven setting goes. Default: autotune-APP-STUDY.conf here.",
        ),
    ] = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    metric: o.Metric = None,
    metric_choice: o.Choice = None,
    verify: o.Verify = None,
    stdin: o.Stdin = None,
    timeout: o.Timeout = None,
    clean_env: o.CleanEnv = False,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Search for a better setting of a program and prove it against the default.

    An interrupted search goes on when the same command is given again; a finished one prints its
    stored result.
    """
    seconds = None if budget is None else parse_duration(budget)
    asked = SearchRequest(
        target=TargetRequest(
            program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env,
            "search", metric_choice, stdin,
        ),
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
        features=None if features is None else str(features),
        params_file=None if params_file is None else str(params_file),
    )  # fmt: skip
    for place in (None if json_out == "-" else json_out, params_file):
        if place is not None:
            check_writable(Path(place))
    with Store.open(store) as opened:
        shared = join or scheduler is not None
        progress = watch(asked, json_out)
        begun = Search(asked, opened, join=shared, watch=progress)
        if scheduler is None:
            conduct(begun, progress, json_out)
            return
        time_s = None if walltime is None else parse_duration(walltime)
        crew = Crew(scheduler, workers, nodes_per_trial, time_s, tuple(job_option or []))
        stored = begun.followed_answer()
        finish(work(crew, begun, store) if stored is None else stored, json_out)


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"-O {word!r} is not understood; expected NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs
