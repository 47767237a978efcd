"""The evaluation of predicted layouts on recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autotune.api.analysis_requests import EvaluateRequest
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.prediction.evaluation import Evaluation
from autotune.prediction.layout_evaluation import evaluate_layouts
from autotune.prediction.layout_examples import layout_training_set
from autotune.prediction.layout_models import LAYOUT_KINDS


def evaluate_recorded_layouts(
    sources: Sequence[str], request: EvaluateRequest, watch: Callable[[str], None]
) -> tuple[Evaluation, tuple[Note, ...]]:
    """The scores of models over layouts on programs left out, and notes on the data.

    Raises UsageError for what layouts do not have: other groups than programs, other models.
    """
    if request.leave_out != "program":
        raise UsageError(
            f"--leave-out {request.leave_out}: of datasets of layouts only programs can be left "
            "out; leave the option out",
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
    return evaluate_layouts(data, kinds, watch), data.notes
