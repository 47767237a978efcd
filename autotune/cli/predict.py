"""``autotune predict``: the setting for a program, from the features of one traced run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import options as o
from autotune.cli.predict_proof import (
    Proof,
    Wanted,
    check_prediction,
    refusal,
    target_of,
    write_params,
)
from autotune.cli.predict_words import print_prediction, strange_here, to_json
from autotune.cli.render import console, error_console, write_json
from autotune.config.cluster import read_cluster
from autotune.errors import UsageError, WorkError
from autotune.space import Setting, Space
from autotune.space.trust import check_config_name, check_values
from autotune.study.duration import parse_duration
from autotune.study.launcher_line import LAUNCHERS
from autotune.words import short_setting
from runner.mpi.discover import launcher_of

if TYPE_CHECKING:
    from autotune.predict import Named
    from runner.trace import Features

CHECK = "Check"
LOCAL = "local"


def predict(
    features_file: Annotated[
        Path, typer.Argument(metavar="FEATURES", help="From: autotune features -o FEATURES")
    ],
    program: o.Program = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="FILE", help="Default: the one trained here, else the shipped one."
        ),
    ] = None,
    params_file: Annotated[
        Path | None,
        typer.Option("--params-file", metavar="FILE", help="Write the setting for mpirun --tune."),
    ] = None,
    unproven: Annotated[
        bool,
        typer.Option("--unproven", help="Write it although model and machine do not match."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            rich_help_panel=CHECK,
            help="Compare it with the default on this machine, on --app or -- PROGRAM.",
        ),
    ] = False,
    run_recorded: Annotated[
        bool,
        typer.Option(
            "--run-recorded",
            rich_help_panel=CHECK,
            help="Check with the command line that the features file holds.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="TIME", rich_help_panel=CHECK, help="Machine time: 90s, 10m."
        ),
    ] = None,
    runs: o.MaxRuns = None,
    min_gain: Annotated[
        float,
        typer.Option(
            "--min-gain", metavar="PERCENT", min=0, max=50, help="The smallest gain worth naming."
        ),
    ] = 2.0,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="NAME|FILE", help="Which parameters there are."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="C",
            help="Where it is to run; default: where it was traced.",
            rich_help_panel=o.TARGET,
        ),
    ] = None,
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
    """Predict the setting of a program from one traced run, with what speaks for it."""
    from autotune.predict import acting, find_model, named_there, usable
    from autotune.predict.scaling import described

    features = read_features(features_file)
    known = find_model(model)
    if (program or app) and not check:
        raise UsageError("a program is only run with --check; leave it out, or add --check")
    if check and run_recorded and (program or app):
        raise UsageError("give either --run-recorded or a program to check with, not both")
    if run_recorded and not check:
        raise UsageError("--run-recorded goes with --check")
    if params_file is not None:
        o.check_writable(params_file)
    words = o.TargetWords(
        program,
        app,
        input_name,
        ranks or features.ranks,
        cluster or _traced_on(features),
        mpi or _traced_with(features, program),
        metric,
        verify,
        timeout,
        clean_env,
        f"predict {features_file} --check",
        metric_choice,
        stdin,
    )
    wanted = Wanted(
        words=words,
        space=space,
        features=features,
        recorded=run_recorded,
        budget_s=None if budget is None else parse_duration(budget),
        max_runs=runs,
        min_gain=min_gain / 100,
        guard=guard,
        quiet=json_out == "-",
        store=store,
    )
    place = target_of(wanted, check)
    values = described(features)
    # What acts on nothing that the program does is not proposed, and not sent through a check.
    offered = list(dict.fromkeys(acting(setting, values) for setting in known.settings))
    if place is not None:
        space_here = place.space
        offered = [named_there(s, space_here, known) for s in usable(offered, space_here)]
    named = known.predictor.name(values, offered)
    if place is not None:
        named = named.renamed(place.space.aliases)
    check_values(named.setting, f"the model {known.place}")
    near = known.predictor.neighbours(values)
    strange = strange_here(known, features, place is None)
    if json_out != "-":
        print_prediction(named, near, strange, features, known)
    proof: Proof | None = None
    written: Path | None = None
    refused = ""
    try:
        if check and len(named.setting):
            assert place is not None
            proof = check_prediction(place, wanted, named.setting, params_file)
            written = proof.written
        elif params_file is not None and len(named.setting):
            refused = refusal(strange, unproven, place)
            if not refused and place is not None:
                written = write_params(params_file, place, named.setting, known.about.data_hash)
    finally:
        data = to_json(named, near, strange, features, known)
        data["check"] = None if proof is None else proof.outcome.to_json()
        data["params_file"] = None if written is None else str(written)
        if json_out:
            write_json(data, json_out)
    _end(named, proof, written, refused, params_file, check, json_out == "-")


def read_features(path: Path) -> Features:
    """A features file; what is wrong with it is wrong input (UsageError)."""
    from runner.trace import FeaturesError, load_features

    try:
        return load_features(path)
    except FeaturesError as problem:
        raise UsageError(str(problem)) from None


def predicted(path: Path, space: Space) -> tuple[Setting, ...]:
    """What a search should try first for the program of a features file; said on stderr."""
    from autotune.predict import find_model, priors_for

    found = priors_for(read_features(path), space, find_model())
    words = "; ".join(short_setting(p.to_json()) for p in found) or "nothing but the default"
    error_console().print(f"predicted, to be tried first: {words}", markup=False)
    return tuple(found)


def _end(
    named: Named,
    proof: Proof | None,
    written: Path | None,
    refused: str,
    params_file: Path | None,
    check: bool,
    quiet: bool,
) -> None:
    out = console()
    if not quiet and check and proof is None:
        out.print("nothing to check: it is the default that is predicted", markup=False)
    if not quiet and written is not None:
        out.print(
            f"parameter file: mpirun --tune {shlex.quote(str(written))} ...",
            markup=False,
            soft_wrap=True,
        )
    elif not quiet and params_file is not None and not len(named.setting):
        out.print(f"{params_file} not written: the default needs no file", markup=False)
    elif not quiet and params_file is not None and proof is not None:
        out.print(f"{params_file} not written: {proof.why_not}", markup=False, soft_wrap=True)
    if proof is not None and proof.outcome.failed:
        raise WorkError(proof.outcome.failed)
    if refused:
        raise WorkError(f"{params_file} not written: {refused}")


def _traced_on(features: Features) -> str:
    """The cluster that the features name, where it is known here by that name."""
    name = features.cluster or LOCAL
    try:
        # A path would be anybody's file.
        return read_cluster(check_config_name("clusters", name, "the features file")).name
    except UsageError:
        return LOCAL


def _traced_with(features: Features, program: list[str] | None) -> str | None:
    """The MPI that the program was traced with, where it is installed; None where the first that is
    found is meant, or a launcher before ``program`` says which."""
    if program and Path(program[0]).name in LAUNCHERS:
        return None
    return launcher_of(features.mpi_name, features.mpi_version)
