"""Terminal output of a predicted layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import note_line, print_line, print_note
from autotune.wording import percent, share

if TYPE_CHECKING:
    from autotune.api.layout_prediction import LayoutPrediction
    from autotune.space import Setting


def print_layout_prediction(prediction: LayoutPrediction) -> None:
    """Print the layout in the program's own parameters and in words, and the reasons."""
    answer, target = prediction.answer, prediction.target
    what = " ".join(filter(None, (target.app.name, target.input)))
    title = f"Layout predicted for {what} on {target.ranks} cores, space {prediction.space.name}:"
    if len(answer.setting):
        print_line(title, bold=True)
        _print_layout(prediction, answer.setting)
        assert answer.gain is not None
        assert answer.interval is not None
        low, high = (percent(end) if end < 100 else "over +10000 %" for end in answer.interval)
        print_line(
            f"expected gain {percent(answer.gain)} (95 % of programs: {low} to {high}); chance of "
            f"being slower {share(answer.harm)}; predicted, not proven"
        )
    else:
        print_line(f"{title} the default.", bold=True)
        if answer.unsure:
            print_line(f"best score (expected gain {percent(answer.best_gain)}):")
            _print_layout(prediction, answer.best)
            print_line(f"not recommended, because {answer.unsure}")
    if answer.far:
        reach = prediction.predictor.confidence.reach
        print_line(
            note_line(
                "model.far",
                f"this layout is far from all known ones: distance {answer.distance:.2f}, but the "
                f"model was validated up to {reach:.2f}; its predictions there are guesses",
            )
        )
    for note in prediction.strange:
        print_note(note)


def _print_layout(prediction: LayoutPrediction, setting: Setting) -> None:
    for name, value in setting.items():
        print_line(f"  {name} = {value}")
    words = prediction.layouts.layout(setting).words
    print_line("in words: " + ", ".join(f"{word} {value}" for word, value in words.items()))
