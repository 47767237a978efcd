"""``autotune predict``: predicts a setting for a program from the features of one traced run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.requests import PredictRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError, WorkError
from autotune.files import check_writable
from autotune.space import DEFAULT
from autotune.terminal.render import write_json

if TYPE_CHECKING:
    from autotune.api.prediction_check import PredictionCheck
    from runner.trace import Features


@takes_request
def predict(request: PredictRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Predict a setting for a program from the features of one traced run, or its layout.

    The evidence for the prediction is printed with it.  --check proves it by runs.
    """
    if request.features is None:
        _predict_layout(request, store, json_out)
    else:
        _predict_setting(request, request.features, store, json_out)


def _predict_layout(request: PredictRequest, store: str | None, json_out: str | None) -> None:
    """Predict the layout of a program in a space with words of layouts."""
    from autotune.api.features import traced_before
    from autotune.api.layout_prediction import predict_layout
    from autotune.api.prediction_check import check_setting
    from autotune.api.target import find_target
    from autotune.store import Store
    from autotune.terminal.layout_prediction import print_layout_prediction
    from autotune.terminal.outcome import print_comparison
    from autotune.terminal.progress import Progress

    refuse_options(request)
    words = request.target.model_copy(
        update={"cluster": request.cluster or "local", "command": "predict --check"}
    )
    target = find_target(words)

    def trace() -> Features | None:
        with Store.open(store) as database:
            return traced_before(database, target)

    prediction = predict_layout(target, request.space, request.model, trace)
    quiet = json_out == "-"
    if not quiet:
        print_layout_prediction(prediction)
    outcome = None
    if request.check and len(prediction.to_check):
        with Store.open(store) as database, Progress(None, request.budget_s, quiet) as progress:
            outcome = check_setting(
                prediction.target,
                prediction.space,
                prediction.to_check,
                database,
                min_gain=request.min_gain,
                budget_s=request.budget_s,
                max_runs=request.max_runs,
                guard=request.guard,
                watch=progress,
            )
        if not quiet:
            print_comparison(DEFAULT.key, prediction.to_check.key, outcome.figures)
    if json_out:
        write_json(prediction.document(None if outcome is None else outcome.figures), json_out)
    if outcome is not None and outcome.failed:
        raise WorkError(outcome.failed, code="prediction.check_fails")


def refuse_options(request: PredictRequest) -> None:
    """Raise UsageError for what a prediction of a layout lacks, and for what it does not have."""
    if not request.target.program and not request.target.app:
        raise UsageError(
            "nothing to predict for: expected a file of autotune features, or a program (--app or "
            "-- PROGRAM) with --space, whose layout is predicted",
            code="prediction.missing",
        )
    for is_given, option in (
        (request.params_file is not None, "--params-file"),
        (request.run_recorded, "--run-recorded"),
        (request.unproven, "--unproven"),
    ):
        if is_given:
            raise UsageError(
                f"{option} needs a features file: a layout is options of the program, which no "
                "parameter file holds",
                code="prediction.options",
            )


def _predict_setting(
    request: PredictRequest, features_file: str, store: str | None, json_out: str | None
) -> None:
    """Predict a setting from the features of a traced run."""
    from autotune.api.features import read_features
    from autotune.api.figures import with_figure
    from autotune.api.predict import predict as predict_setting
    from autotune.api.predict import traced_on, traced_with
    from autotune.api.prediction_check import (
        check_prediction,
        checked_target,
        refusal,
        write_params,
    )
    from autotune.store import Store
    from autotune.targets.request import AUTO
    from autotune.terminal.outcome import print_comparison
    from autotune.terminal.prediction import print_prediction, print_prediction_file
    from autotune.terminal.progress import Progress

    features = read_features(Path(features_file))
    target_request, check, guard = request.target, request.check, request.guard
    names_program = bool(target_request.program or target_request.app)
    params_file = None if request.params_file is None else Path(request.params_file)
    if names_program and not check:
        raise UsageError(
            "a program is run only with --check; leave the program out, or add --check",
            code="prediction.options",
        )
    if check and request.run_recorded and names_program:
        raise UsageError(
            "--run-recorded and a program are two ways to name what --check runs; give "
            "only one of them",
            code="prediction.options",
        )
    if request.run_recorded and not check:
        raise UsageError("--run-recorded needs --check", code="prediction.options")
    if params_file is not None:
        check_writable(params_file)
    traced = None if target_request.mpi else traced_with(features, target_request.program)
    words = target_request.model_copy(
        update={
            "ranks": target_request.ranks or features.ranks,
            "cluster": request.cluster or traced_on(features),
            "mpi": target_request.mpi or traced,
            "command": f"predict {features_file} --check",
        }
    )
    if check and words.metric == AUTO and not request.run_recorded:
        with Store.open(store) as database:
            words = with_figure(words, database, guard=guard)
    target = None
    if check:
        target = checked_target(
            features,
            words,
            run_recorded=request.run_recorded,
            is_traced=traced is not None,
        )
    quiet = json_out == "-"
    prediction = predict_setting(
        features,
        model=request.model,
        space=request.space,
        cluster=words.cluster,
        mpi=target_request.mpi,
        target=target,
        commutative_only=target_request.commutative_only,
    )
    if not quiet:
        print_prediction(prediction)
    proof: PredictionCheck | None = None
    params_path: Path | None = None
    refusal_text = ""
    try:
        if check and len(prediction.to_check):
            with Store.open(store) as database, Progress(None, request.budget_s, quiet) as progress:
                proof = check_prediction(
                    prediction,
                    database,
                    min_gain=request.min_gain,
                    budget_s=request.budget_s,
                    max_runs=request.max_runs,
                    guard=guard,
                    params_file=params_file,
                    watch=progress,
                )
            params_path = proof.params_path
            if not quiet:
                print_comparison(DEFAULT.key, prediction.to_check.key, proof.outcome.figures)
        elif params_file is not None and len(prediction.setting):
            refusal_text = refusal(prediction, request.unproven)
            if not refusal_text:
                params_path = write_params(prediction, params_file)
    finally:
        if json_out:
            figures = None if proof is None else proof.outcome.figures
            place = None if params_path is None else str(params_path)
            write_json(prediction.document(figures, place), json_out)
    if not quiet:
        print_prediction_file(prediction.answer, proof, params_path, params_file, check)
    if proof is not None and proof.outcome.failed:
        raise WorkError(proof.outcome.failed, code="prediction.check_fails")
    if refusal_text:
        raise WorkError(
            f"{params_file} not written: {refusal_text}", code="prediction.file_refused"
        )
