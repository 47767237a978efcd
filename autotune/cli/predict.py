"""``autotune predict``: predicts a setting for a program from the features of one traced run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.errors import UsageError, WorkError
from autotune.files import check_writable
from autotune.terminal.render import console, write_json
from autotune.wording import parse_duration

if TYPE_CHECKING:
    from autotune.api.prediction_check import PredictionCheck
    from autotune.prediction import NamedSetting

CHECK = "Check"
LOCAL = "local"


def predict(
    features_file: Annotated[
        Path, typer.Argument(metavar="FEATURES", help="File written by autotune features.")
    ],
    program: o.Program = None,
    model: Annotated[
        str | None,
        opt(
            "--model FILE",
            "Model file. Default: the model written by autotune train, else the shipped one.",
        ),
    ] = None,
    params_file: Annotated[
        Path | None,
        opt(
            "--params-file FILE",
            "File for the predicted setting, in the form that mpirun --tune reads.",
        ),
    ] = None,
    unproven: Annotated[
        bool,
        opt(
            "--unproven",
            "Write --params-file even if the model was not trained on this machine and MPI "
            "library.",
        ),
    ] = False,
    check: Annotated[
        bool,
        opt(
            "--check",
            "Compare the predicted setting, or the one with the best score if none is certain "
            "enough, with the default on this machine, by running --app or -- PROGRAM.",
            CHECK,
        ),
    ] = False,
    run_recorded: Annotated[
        bool,
        opt(
            "--run-recorded",
            "With --check: run the command line that is recorded in FEATURES.",
            CHECK,
        ),
    ] = False,
    budget: Annotated[
        str | None,
        opt(
            "--budget TIME",
            "Machine time for --check, for example 90s or 10m. Default: at most 24 runs.",
            CHECK,
        ),
    ] = None,
    runs: o.MaxRuns = None,
    min_gain: Annotated[
        float,
        opt(
            "--min-gain PERCENT", "Smallest gain that counts as a gain, in percent.", min=0, max=50
        ),
    ] = 2.0,
    app: o.AppName = None,
    input_name: o.InputName = None,
    ranks: o.Ranks = None,
    space: Annotated[
        str | None,
        opt(
            "--space NAME|FILE",
            "Parameter space that the setting is checked against. Default: that of the MPI "
            "library.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        opt(
            "--cluster C",
            "Cluster on which the program will run. Default: the one it was traced on.",
            o.TARGET,
        ),
    ] = None,
    mpi: o.Mpi = None,
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
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Predict a setting for a program from the features of one traced run.

    The evidence for the prediction is printed with it.  --check proves it by runs.
    """
    from autotune.api.features import read_features
    from autotune.api.predict import predict as predicted
    from autotune.api.predict import traced_on, traced_with
    from autotune.api.prediction_check import (
        check_prediction,
        recorded_target,
        refusal,
        write_params,
    )
    from autotune.api.target import find_target
    from autotune.space import DEFAULT
    from autotune.store import Store
    from autotune.targets.request import TargetRequest
    from autotune.terminal.outcome import print_comparison
    from autotune.terminal.prediction import print_prediction
    from autotune.terminal.progress import Progress

    features = read_features(features_file)
    if (program or app) and not check:
        raise UsageError(
            "a program is run only with --check; leave the program out, or add --check",
            code="prediction.options",
        )
    if check and run_recorded and (program or app):
        raise UsageError(
            "--run-recorded and a program are two ways to name what --check runs; give "
            "only one of them",
            code="prediction.options",
        )
    if run_recorded and not check:
        raise UsageError("--run-recorded needs --check", code="prediction.options")
    if params_file is not None:
        check_writable(params_file)
    words = TargetRequest(
        program,
        app,
        input_name,
        ranks or features.ranks,
        cluster or traced_on(features),
        mpi or traced_with(features, program),
        metric,
        verify,
        timeout,
        clean_env,
        f"predict {features_file} --check",
        metric_choice,
        stdin,
        metric_rate,
        o.command_words(before),
        fresh_dir,
        commutative_only,
        verify_absent=verify_absent,
        exit_codes=exit_codes,
    )
    target = None
    if check:
        target = recorded_target(features, words) if run_recorded else find_target(words)
    quiet = json_out == "-"
    found = predicted(
        features,
        model=model,
        space=space,
        cluster=words.cluster,
        mpi=mpi,
        target=target,
        commutative_only=commutative_only,
    )
    if not quiet:
        print_prediction(found)
    proof: PredictionCheck | None = None
    written: Path | None = None
    refused = ""
    try:
        if check and len(found.to_check):
            budget_s = None if budget is None else parse_duration(budget)
            with Store.open(store) as opened, Progress(None, budget_s, quiet) as progress:
                proof = check_prediction(
                    found,
                    opened,
                    min_gain=min_gain / 100,
                    budget_s=budget_s,
                    max_runs=runs,
                    guard=guard,
                    params_file=params_file,
                    watch=progress,
                )
            written = proof.written
            if not quiet:
                print_comparison(DEFAULT.key, found.to_check.key, proof.outcome.to_json())
        elif params_file is not None and len(found.setting):
            refused = refusal(found, unproven)
            if not refused:
                written = write_params(found, params_file)
    finally:
        data = found.to_json()
        data["check"] = None if proof is None else proof.outcome.to_json()
        data["params_file"] = None if written is None else str(written)
        if json_out:
            write_json(data, json_out)
    _end(found.named, proof, written, refused, params_file, check, quiet)


def _end(
    named: NamedSetting,
    proof: PredictionCheck | None,
    written: Path | None,
    refused: str,
    params_file: Path | None,
    check: bool,
    quiet: bool,
) -> None:
    out = console()
    if not quiet and check and proof is None:
        out.print("nothing to check: no gain is expected of any setting", markup=False)
    if not quiet and written is not None:
        out.print(
            f"parameter file: mpirun --tune {shlex.quote(str(written))} ...",
            markup=False,
            soft_wrap=True,
        )
    elif not quiet and params_file is not None and proof is None and not len(named.setting):
        out.print(
            f"{params_file} not written: the predicted setting is the default, which needs no file",
            markup=False,
        )
    elif not quiet and params_file is not None and proof is not None:
        out.print(f"{params_file} not written: {proof.why_not}", markup=False, soft_wrap=True)
    if proof is not None and proof.outcome.failed:
        raise WorkError(proof.outcome.failed, code="prediction.check_fails")
    if refused:
        raise WorkError(f"{params_file} not written: {refused}", code="prediction.file_refused")
