"""``autotune search``: the main job."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options as o
from autotune.cli.outcome import print_result
from autotune.cli.predict import predicted
from autotune.cli.progress import Progress
from autotune.cli.render import console, error_console, percent, write_json
from autotune.errors import AutotuneError, UsageError
from autotune.publish import NotObeyed, write_tune_file
from autotune.store import Store
from autotune.strategies import names, resolve_options
from autotune.study.conduct import Conducting, Conductor, Request
from autotune.study.duration import parse_duration
from autotune.study.plan import SearchPlan
from autotune.study.result import Result

DEFAULT_TRIALS = 100
SEARCH = "Search"


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
    verify: o.Verify = None,
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
    words = o.TargetWords(
        program, app, input_name, ranks, cluster, mpi, metric, verify, timeout, clean_env
    )
    target = words.resolve()
    known = o.space_for(target, space)
    request = Request(
        target=target,
        space=known,
        strategy=strategy,
        options=resolve_options(strategy, _pairs(option), preset),
        seed=seed,
        plan=_plan(trials, budget, runs, min_gain),
        guard=guard,
        remeasure=remeasure,
        priors=(*(() if features is None else predicted(features, known)), *known.starts),
    )
    if json_out not in (None, "-"):
        o.check_writable(Path(str(json_out)))
    with Store.open(store) as opened:
        study(request, opened, params_file, json_out)


def study(request: Request, store: Store, params_file: Path | None, json_out: str | None) -> None:
    """Conduct a study and print it; exit code by what became of it."""
    quiet = json_out == "-"
    progress = Progress(request.plan.trials, request.plan.budget_s, quiet)
    request.watch = progress
    conducting = Conducting(request, store)
    stored = conducting.finished()
    if stored is not None:
        _finish(stored, json_out, "this study is finished; its stored result:")
        return
    conductor: Conductor | None = None
    try:
        with conducting as conductor, progress:
            result = conductor.run()
            _write_params(conductor, result, params_file)
    except KeyboardInterrupt:
        if conductor is not None:
            _interrupted(conductor, store, json_out)
        raise
    except AutotuneError:
        if conductor is not None:
            store.set_result(conducting.study.id, "failed", None)
        raise
    store.set_result(conducting.study.id, result.status, result.to_json())
    _finish(result, json_out)


def _finish(result: Result, json_out: str | None, note: str = "") -> None:
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        if note:
            console().print(note, markup=False)
        print_result(result)


def _write_params(conductor: Conductor, result: Result, path: Path | None) -> None:
    """The parameter file of a proven setting; a file that is not obeyed becomes a warning."""
    if result.status != "recommended" or result.gain is None or result.gain_ci is None:
        return
    request = conductor.request
    place = path or Path(f"autotune-{_safe(result.app)}-{result.study[:8]}.conf")
    low, high = result.gain_ci
    where = (
        f"for {result.app} on {result.ranks} ranks, {result.mpi['name']} {result.mpi['version']}, "
        f"machine {result.machine}, cluster {result.cluster}"
    )
    proof = (
        f"gain over the default {percent(result.gain)}, 95 % interval {percent(low)} to "
        f"{percent(high)}, {result.confirmation_runs} confirmation runs; study {result.study}"
    )
    use = f"use: mpirun --tune {place.name} ...   undo: leave the option out"
    evidence = [f"autotune: {result.recommended.key}", where, proof, use]
    try:
        written = write_tune_file(
            place, request.target, request.space, result.recommended, evidence, conductor.runner
        )
    except NotObeyed as problem:
        result.warnings.append(str(problem))
        return
    result.params_file = str(written) if written else None


def _interrupted(conductor: Conductor, store: Store, json_out: str | None) -> None:
    result = conductor.result("you stopped it")
    store.set_result(conductor.study.id, "interrupted", result.to_json())
    if json_out:
        write_json(result.to_json(), json_out)
    error_console().print(
        f"\nInterrupted; every finished run is kept ({result.search_runs} search runs, "
        f"{result.confirmation_runs} confirmation runs).  Continue with:\n  {_this_command()}",
        markup=False,
    )


def _this_command() -> str:
    return shlex.join(["autotune", *sys.argv[1:]])


def _plan(trials: int | None, budget: str | None, runs: int | None, min_gain: float) -> SearchPlan:
    seconds = None if budget is None else parse_duration(budget)
    if trials is None and seconds is None and runs is None:
        trials = DEFAULT_TRIALS
    return SearchPlan(trials=trials, budget_s=seconds, max_runs=runs, min_gain=min_gain / 100)


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"-O {word!r} is not understood; expected NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name) or "program"
