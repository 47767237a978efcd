"""The evaluation of predicted layouts on recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autotune.api.analysis_requests import EvaluateRequest
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.prediction.evaluation import REPORT, Evaluation
from autotune.prediction.layout_evaluation import evaluate_layouts
from autotune.prediction.layout_examples import layout_training_set
from autotune.prediction.layout_kinds import LAYOUT_KINDS


def evaluate_recorded_layouts(
    sources: Sequence[str], request: EvaluateRequest, watch: Callable[[str], None]
) -> tuple[Evaluation, tuple[Note, ...]]:
    """The scores of models over layouts on programs left out, and notes on the data.

    Raises UsageError for what layouts do not have: other groups than programs, other models.
    """
    if request.leave_out not in ("program", REPORT):
        raise UsageError(
            f"--leave-out {request.leave_out}: of datasets of layouts programs can be left out, or "
            f"the cells for reporting ({REPORT})",
            code="evaluation.no_groups",
        )
    unknown = [model for model in request.models if model not in LAYOUT_KINDS]
    if unknown:
        raise UsageError(
            f"--model {unknown[0]}: for layouts there is {', '.join(LAYOUT_KINDS)}",
            code="evaluation.unknown",
        )
    data = layout_training_set(sources, request.split)
    kinds = tuple(request.models or LAYOUT_KINDS)
    if request.leave_out == REPORT and not any(e.split == REPORT for e in data.examples):
        raise UsageError(
            "--leave-out report: no cell of these datasets is only for reporting; add a dataset "
            "whose cells have the split report, such as grid-layouts-testbed",
            code="evaluation.no_groups",
        )
    return evaluate_layouts(data, kinds, watch, request.leave_out), data.notes
