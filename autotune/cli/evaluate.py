"""``autotune evaluate predict``: how good predictions are for programs left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.api.analysis_requests import EvaluateRequest
from autotune.cli.options import JsonOut
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import check_writable, write_text
from autotune.terminal.evaluation import CountingWatcher, evaluation_picture, print_evaluation
from autotune.terminal.render import print_note, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autotune.notes import Note
    from autotune.prediction import Evaluation

evaluate = typer.Typer(
    help="Measure on recorded runs how good the predictions are.", no_args_is_help=True
)


@evaluate.callback()
def _root() -> None:
    """Measure on recorded runs how good the predictions are."""


@evaluate.command("predict")
@takes_request
def predict(request: EvaluateRequest, json_out: JsonOut = None) -> None:
    """Leave each program out in turn, predict its setting, and compare with its recorded runs."""
    from autotune.api.layout_evaluation import evaluate_recorded_layouts
    from autotune.prediction import GROUPS, KINDS, training_set
    from autotune.prediction import evaluate as judge
    from autotune.prediction.evaluation import METHODS, REPORT, class_wide
    from autotune.prediction.layout_examples import only_layouts
    from autotune.prediction.program_effects import COMPOSITION

    sources = [*request.datasets, *request.sources]
    leave_out, models = request.leave_out, request.models
    picture = None if request.picture is None else Path(request.picture)
    if not sources:
        raise UsageError(
            "no dataset given; expected autotune evaluate predict --from DATASET",
            code="evaluation.missing",
        )
    if leave_out not in GROUPS:
        raise UsageError(
            f"--leave-out {leave_out!r} is not known; expected one of {', '.join(GROUPS)}",
            code="evaluation.unknown",
        )
    unknown = [m for m in models if m not in METHODS]
    if unknown:
        raise UsageError(
            f"--model {unknown[0]!r} is not known; expected one of {', '.join(METHODS)}",
            code="evaluation.unknown",
        )
    if picture is not None:
        check_writable(picture)
    watch = CountingWatcher(json_out == "-")
    if only_layouts(sources):
        evaluation, notes = evaluate_recorded_layouts(sources, request, watch)
        _show(evaluation, notes, picture, json_out)
        return
    data = training_set(sources, request.split)
    if leave_out == REPORT and not any(e.split == REPORT for e in data.examples):
        raise UsageError(
            "--leave-out report: no cell of these datasets is only for reporting; add a dataset "
            "whose cells have the split report, such as programs-report-node",
            code="evaluation.no_groups",
        )
    if len({GROUPS[leave_out](e) for e in data.examples}) < 2:
        raise UsageError(
            f"--leave-out {leave_out}: all {len(data.examples)} cells have the same "
            f"{leave_out}, so nothing is left to train on; leave out something else, or "
            "add a dataset",
            code="evaluation.no_groups",
        )
    has_calibration = any(e.calibration is not None for e in data.examples)
    kinds = tuple(models or (METHODS if has_calibration else KINDS))
    if COMPOSITION in kinds and not has_calibration:
        raise UsageError(
            f"--model {COMPOSITION}: no dataset has a calibration.json; expected one with the file "
            "that autotune calibrate wrote",
            code="training.no_calibration",
        )
    evaluation = judge(data, leave_out, kinds, class_wide(sources), watch)
    _show(evaluation, data.notes, picture, json_out)


def _show(
    evaluation: Evaluation, notes: Sequence[Note], picture: Path | None, json_out: str | None
) -> None:
    """Write or print the scores."""
    if json_out:
        write_json(evaluation.document, json_out)
    if picture is not None:
        write_text(picture, evaluation_picture(evaluation))
    if json_out != "-":
        print_evaluation(evaluation)
        for note in notes:
            print_note(note)
