"""``autotune evaluate predict``: how good predictions are for programs left out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.api.analysis_requests import EvaluateRequest
from autotune.cli.options import JsonOut
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import check_writable, write_text
from autotune.terminal.render import (
    print_line,
    print_message,
    print_note,
    print_table,
    write_json,
)
from autotune.wording import remaining

if TYPE_CHECKING:
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
    from autotune.prediction import GROUPS, KINDS, training_set
    from autotune.prediction import evaluate as judge
    from autotune.prediction.evaluation import METHODS, REPORT, class_wide
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
    watch = _Counting(json_out == "-")
    calibrated = any(e.calibration is not None for e in data.examples)
    kinds = tuple(models or (METHODS if calibrated else KINDS))
    if COMPOSITION in kinds and not calibrated:
        raise UsageError(
            f"--model {COMPOSITION}: no dataset has a calibration.json; expected one with the file "
            "that autotune calibrate wrote",
            code="training.no_calibration",
        )
    found = judge(data, leave_out, kinds, class_wide(sources), watch)
    if json_out:
        write_json(found.document, json_out)
    if picture is not None:
        write_text(picture, _picture(found))
    if json_out != "-":
        _print(found)
        for note in data.notes:
            print_note(note)


class _Counting:
    """A watcher that prints the current group and the expected remaining time."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._began = time.monotonic()
        self._done = 0

    def __call__(self, words: str) -> None:
        total = int(words.split(" of ")[1].split(":")[0])
        left = ""
        if self._done:
            spent = time.monotonic() - self._began
            left = f", about {remaining(spent / self._done * (total - self._done))} left"
        self._done += 1
        if not self._quiet:
            print_message(f"{words}{left}")


def _print(found: Evaluation) -> None:
    columns = ["method", ">performance", ">worst", ">share", ">slower", ">as stated"]
    columns += [">on null", ">covered"]
    rows = [
        [
            r.method,
            f"{r.performance:.1%}",
            f"{r.worst:.1%}",
            "-" if r.share is None else f"{r.share:.1%}",
            str(r.slower),
            f"{r.harm:.1f}" if r.harm else "-",
            str(r.false),
            "/".join(map(str, r.interval_hits)) if r.interval_hits[1] else "-",
        ]
        for r in found.rows
    ]
    print_table(
        f"{found.cells} cells, {found.null_cells} of them null; left out: {found.left_out}",
        columns,
        rows,
    )
    print_line(
        "performance: T_OPUB / T, mean over cells; share: gain / gain(OPUB), mean over "
        "cells with a possible gain; slower: number of cells that are slower than "
        "their default beyond noise; as stated: how many the stated chances expect; on null: "
        "number of settings named where the default is best; covered: programs whose stated "
        "95 % interval holds the measured gain"
    )


def _picture(found: Evaluation) -> str:
    from autotune.report.figures import Mark, dots

    marks = [
        Mark(
            r.method,
            r.performance,
            r.worst,
            max(v.performance for v in r.verdicts),
            f"{r.performance:.1%}",
        )
        for r in found.rows
    ]
    title = f"Predicted settings, {found.left_out} left out: mean, worst and best cell"
    return dots(title, "performance ratio T_OPUB / T", marks, reference=1.0)
