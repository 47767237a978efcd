"""Terminal output of a model that was trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_note, print_table

if TYPE_CHECKING:
    from autotune.api.training import TrainedModel
    from autotune.prediction.layout_predictor import LayoutTraining
    from autotune.prediction.program_effects import ProgramEffects
    from autotune.prediction.training import TrainingResult


def print_training(
    model: TrainedModel,
    results: Sequence[TrainingResult | LayoutTraining],
    unit: str = "settings",
) -> None:
    """Print the models that were compared, and the one that was written."""
    print_line(f"{model.cells} cells of {len(model.programs)} programs, {model.settings} {unit}")
    rows = [[t.kind, f"{-t.cost * 100:+.1f} %", _options(t.options)] for t in results]
    print_table("", ["model", ">on programs left out", "options chosen there"], rows)
    for note in model.notes:
        print_note(note)
    print_line(f"{model.kind} written to {model.model}", whole=True)


def print_effects(model: TrainedModel, effects: ProgramEffects) -> None:
    """Print how programs differ from what a calibration composes."""
    print_line(f"{model.cells} cells of {len(model.programs)} programs")
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
        for situation, one in sorted(effects.situations.items())
    ]
    columns = ["nodes", "ranks than cores", ">programs", ">slope", ">between", ">waiting", ">floor"]
    print_table("", columns, rows)
    print_line(f"{model.kind} written to {model.model}", whole=True)


def _options(options: object) -> str:
    return ", ".join(f"{k}={v}" for k, v in dict(options).items())  # type: ignore[call-overload]
