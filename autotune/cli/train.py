"""``autotune train``: trains a model from recorded runs and the features of their programs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from autotune.api.analysis_requests import TrainRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import check_writable
from autotune.terminal.render import write_document
from autotune.terminal.training import print_effects, print_training
from runner.files.private_files import make_folder
from runner.files.scratch import Scratch


@takes_request
def train(request: TrainRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Train a model that predicts settings from the features of a program.

    The kind of model is chosen by cross-validation: each program is left out in turn.  Datasets
    whose parameters belong to their programs give a model of layouts.
    """
    from autotune.api.datasets import dataset_of_features
    from autotune.api.training import (
        layout_kinds,
        learn_effects,
        model_kinds,
        train_layout_model,
        train_model,
    )
    from autotune.prediction import default_place, training_set
    from autotune.prediction.layout_examples import layout_training_set, only_layouts
    from autotune.prediction.layout_model_file import layout_place
    from autotune.prediction.program_effects import COMPOSITION, own_place
    from autotune.terminal.progress import ProgressState

    is_composed = request.model == COMPOSITION and request.preset is None
    kinds = () if is_composed else model_kinds(request.model, request.preset)
    out = None if request.out is None else Path(request.out)
    features = [Path(file) for file in request.features]
    of_layouts = only_layouts([*request.datasets, *request.sources])
    if of_layouts:
        kinds = layout_kinds(request.model, request.preset)
    usual_place = layout_place if of_layouts else own_place if is_composed else default_place
    place = out or usual_place()
    if out is None:
        try:
            make_folder(place.parent)
        except OSError as problem:
            raise UsageError(
                f"cannot write {place}: {problem.strerror}: {problem.filename}; name another "
                "file with -o FILE",
                code="file.unwritable",
            ) from None
    check_writable(place)
    with ExitStack() as stack:
        folders = [*request.datasets, *request.sources]
        if not folders:
            scratch = stack.enter_context(Scratch("train"))
            folders = [str(dataset_of_features(store, features, scratch / "store"))]
        elif features:
            raise UsageError(
                "--features is only used with --store; a dataset has its own features files "
                "(folder features)",
                code="training.not_applicable",
            )
        if of_layouts:
            layouts = layout_training_set(folders, request.split)
            with ProgressState(json_out == "-") as say:
                trained = train_layout_model(layouts, kinds, place, say)
            if write_document(trained[0], json_out):
                print_training(*trained, unit="layouts")
            return
        data = training_set(folders, request.split)
        if is_composed:
            effects = learn_effects(data, place)
            if write_document(effects[0], json_out):
                print_effects(*effects)
            return
        with ProgressState(json_out == "-") as say:
            training = train_model(data, kinds, place, say)
    if write_document(training[0], json_out):
        print_training(*training)
