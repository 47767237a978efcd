"""``autotune search``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.api.target import TargetRequest
from autotune.cli import options as o
from autotune.cli.conducted import finish, study
from autotune.cli.predict import predicted
from autotune.cli.scheduled import Crew, work
from autotune.errors import UsageError
from autotune.store import Store
from autotune.strategies import names, resolve_options
from autotune.study.conduct import Conducting, Request, answer_of
from autotune.study.duration import parse_duration
from autotune.study.moved import belong, follow
from autotune.study.plan import SearchPlan
from autotune.study.trust import sign
from autotune.study.worker_request import WorkerRequest

DEFAULT_TRIALS = 100
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
    of: Annotated[str | None, typer.Option("--of", hidden=True)] = None,
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
    words = TargetRequest(
        program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env, "search",
        metric_choice, stdin,
    )  # fmt: skip
    target = words.resolve()
    known = target.space(space)
    request = Request(
        target=target,
        space=known,
        strategy=strategy,
        options=resolve_options(strategy, _pairs(option), preset),
        seed=seed,
        plan=_plan(trials, budget, runs, min_gain),
        guard=guard,
        remeasure=remeasure,
        join=join or scheduler is not None,
        priors=(*(() if features is None else predicted(features, known)), *known.starts),
    )
    if json_out not in (None, "-"):
        o.check_writable(Path(str(json_out)))
    if params_file is not None:
        o.check_writable(params_file)
    with Store.open(store) as opened:
        if request.join:
            told = worker_words(words, space, strategy, option, preset, seed, request.plan)
            if not guard:
                told = ["--no-guard", *told]
            for name, path in (("--features", features), ("--params-file", params_file)):
                if path is not None:
                    told = [name, str(path.absolute()), *told]
            if remeasure:
                told = ["--remeasure", *told]
            conducting = Conducting(request, opened)
            if of is not None:
                belong(opened, opened.find_study(of), conducting.study)
            # A worker carries out what others asked for; what it asks itself, nobody wants.
            if of is None or conducting.study.request is None:
                asked = WorkerRequest(tuple(told), str(Path.cwd()))
                sign(opened, conducting.study, asked)
        if scheduler is not None:
            seconds = None if walltime is None else parse_duration(walltime)
            crew = Crew(scheduler, workers, nodes_per_trial, seconds, tuple(job_option or []))
            stored = answer_of(follow(opened, conducting.study), request.plan)
            if stored is None:
                stored = work(crew, opened, store, conducting.study.id, request)
            finish(stored, json_out)
            return
        study(request, opened, params_file, json_out)


def worker_words(
    words: TargetRequest,
    space: str | None,
    strategy: str,
    option: list[str] | None,
    preset: str | None,
    seed: int,
    plan: SearchPlan,
) -> list[str]:
    """The command line of ``search`` as another worker gives it."""
    line: list[str] = []
    for name, value in (
        ("--app", words.app),
        ("--input", words.input),
        ("--ranks", words.ranks),
        ("--cluster", words.cluster),
        ("--mpi", words.mpi),
        ("--metric", words.metric),
        ("--metric-choice", words.metric_choice),
        ("--stdin", words.stdin),
        ("--verify", words.verify),
        ("--timeout", words.timeout),
        ("--space", space),
        ("--strategy", strategy),
        ("--preset", preset),
        ("--seed", seed),
        ("--trials", plan.trials),
        ("--min-gain", 100 * plan.min_gain),
    ):
        if value is not None:
            line += [name, str(value)]
    for pair in option or []:
        line += ["-O", pair]
    if words.clean_env:
        line.append("--clean-env")
    if plan.budget_s is not None:
        line += ["--budget", f"{plan.budget_s:g}s"]
    if plan.max_runs is not None:
        line += ["--runs", str(plan.max_runs)]
    if words.program:
        line += ["--", *words.program]
    return line


def _plan(trials: int | None, budget: str | None, runs: int | None, min_gain: float) -> SearchPlan:
    seconds = None if budget is None else parse_duration(budget)
    if trials is None and seconds is None and runs is None:
        trials = DEFAULT_TRIALS
    plan = SearchPlan(trials=trials, budget_s=seconds, max_runs=runs, min_gain=min_gain / 100)
    if runs is not None and runs < plan.least_runs:
        raise UsageError(
            f"--runs {runs} leaves nothing for the search: the default's runs and the proof of one "
            f"setting take {plan.least_runs - 1} of them; give more, or another bound (--trials, "
            "--budget)"
        )
    return plan


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"-O {word!r} is not understood; expected NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs
