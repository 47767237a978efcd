"""``autotune train``: trains a model from recorded runs and the features of their programs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from autotune.api.analysis_requests import TrainRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.document import Document, Number
from autotune.errors import UsageError
from autotune.files import check_writable, write_text
from autotune.notes import Note
from autotune.terminal.render import print_line, print_note, print_table, write_json
from runner.files.private_files import make_folder
from runner.files.scratch import Scratch

if TYPE_CHECKING:
    from autotune.prediction import TrainingSet


class TrainedModel(Document):
    """A model that was trained, and on what."""

    schema_: Literal["autotune-training-1"] = Field(default="autotune-training-1", alias="schema")
    model: str
    """File of the model."""
    kind: str
    options: dict[str, Any]
    cost: dict[str, Number]
    cells: int
    programs: list[str]
    settings: int
    data: str
    notes: list[Note]


@takes_request
def train(request: TrainRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Train a model that predicts settings from the features of a program.

    The kind of model is chosen by cross-validation: each program is left out in turn.
    """
    import json

    from autotune.api.datasets import dataset_of_traced
    from autotune.prediction import default_place, model_of, training_set
    from autotune.prediction import train as fit
    from autotune.prediction.program_effects import COMPOSITION, own_place
    from autotune.terminal.progress import ProgressState

    composed = request.model == COMPOSITION and request.preset is None
    kinds = () if composed else _kinds(request.model, request.preset)
    out = None if request.out is None else Path(request.out)
    features = [Path(file) for file in request.features]
    place = out or (own_place() if composed else default_place())
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
            folders = [str(dataset_of_traced(store, features, scratch / "store"))]
        elif features:
            raise UsageError(
                "--features is only used with --store; a dataset has feature files of its own "
                "(folder features)",
                code="training.not_applicable",
            )
        data = training_set(folders, request.split)
        if composed:
            _learn_effects(data, place, json_out)
            return
        with ProgressState(json_out == "-") as say:
            done = [fit(kind, data.examples, data.defaults, watch=say) for kind in kinds]
        best = min(done, key=lambda t: t.cost)
        made = model_of(best, data, {t.kind: t.cost for t in done})
    write_text(place, json.dumps(made.to_json(), allow_nan=False) + "\n")
    if json_out:
        trained = TrainedModel(
            model=str(place),
            kind=best.kind,
            options=dict(best.options),
            cost={t.kind: t.cost for t in done},
            cells=len(data.examples),
            programs=list(data.apps),
            settings=len(made.settings) - 1,
            data=data.hash,
            notes=list(data.notes),
        )
        write_json(trained, json_out)
    if json_out == "-":
        return
    print_line(
        f"{len(data.examples)} cells of {len(data.apps)} programs, {len(made.settings) - 1} "
        "settings"
    )
    rows = [[t.kind, f"{-t.cost * 100:+.1f} %", _options(t.options)] for t in done]
    print_table("", ["model", ">on programs left out", "options chosen there"], rows)
    for note in data.notes:
        print_note(note)
    print_line(f"{best.kind} written to {place}", whole=True)


def _learn_effects(data: TrainingSet, place: Path, json_out: str | None) -> None:
    import dataclasses
    import json

    from autotune.prediction.program_effects import COMPOSITION, ProgramEffects

    known = [one for one in data.examples if one.calibration is not None]
    if not known:
        raise UsageError(
            f"--model {COMPOSITION}: no dataset has a calibration.json; expected one with the file "
            "that autotune calibrate wrote",
            code="training.no_calibration",
        )
    found = ProgramEffects.fit(known)
    about = {
        "data": data.hash,
        "sources": [Path(source).name for source in data.sources],
        "programs": list(data.apps),
        "machines": list(data.machines),
        "mpis": list(data.mpis),
    }
    found = dataclasses.replace(found, about=about)
    write_text(place, json.dumps(found.to_json(), indent=2) + "\n")
    if json_out:
        trained = TrainedModel(
            model=str(place),
            kind=COMPOSITION,
            options={"situations": found.to_json()["situations"]},
            cost={},
            cells=len(known),
            programs=list(data.apps),
            settings=0,
            data=data.hash,
            notes=list(data.notes),
        )
        write_json(trained, json_out)
    if json_out == "-":
        return
    print_line(f"{len(known)} cells of {len(data.apps)} programs")
    rows = [
        [
            "several" if situation.across else "one",
            "more" if situation.crowded else "not more",
            f"{one.programs}",
            f"{one.slope:.2f}",
            f"{one.between:.2f}",
            f"{one.waiting:.2f}",
            f"{one.floor:.3f}",
        ]
        for situation, one in sorted(found.situations.items())
    ]
    columns = ["nodes", "ranks than cores", ">programs", ">slope", ">between", ">waiting", ">floor"]
    print_table("", columns, rows)
    print_line(f"{COMPOSITION} written to {place}", whole=True)


def _options(options: object) -> str:
    return ", ".join(f"{k}={v}" for k, v in dict(options).items())  # type: ignore[call-overload]


def _kinds(model: str, preset: str | None) -> tuple[str, ...]:
    from autotune.prediction import CHOICES, THESIS

    if model != "auto" and model not in CHOICES:
        raise UsageError(
            f"--model {model!r} is not known; expected auto, {', '.join(CHOICES)} or composed",
            code="training.unknown",
        )
    if preset is None:
        return CHOICES if model == "auto" else (model,)
    if preset != "thesis":
        raise UsageError(
            f"--preset {preset!r} is not known; expected thesis", code="training.unknown"
        )
    if model not in THESIS:
        raise UsageError(
            f"--preset thesis needs --model {' or '.join(THESIS)}, not {model}",
            code="training.preset",
        )
    return (THESIS[model],)
