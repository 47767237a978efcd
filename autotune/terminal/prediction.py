"""Terminal output of a prediction."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.over_decomposition import models_of_space, over_decomposition
from autotune.config.app_program import program_name
from autotune.terminal.render import note_line, print_line, print_note, print_table
from autotune.wording import percent, share, short_setting, size_words

if TYPE_CHECKING:
    from autotune.api.predict import Prediction
    from autotune.api.prediction_check import PredictionCheck
    from autotune.prediction import NamedSetting
    from autotune.prediction.composed import ComposedAnswer


def _expected_gain(answer: NamedSetting) -> str:
    if answer.gain is None or answer.interval is None:
        return "a start for a search: no gain is known here"
    low, high = (percent(end) if end < 100 else "over +10000 %" for end in answer.interval)
    return (
        f"expected gain {percent(answer.gain)} (95 % of similar programs: {low} to {high}); "
        f"chance of being slower {_harm(answer.harm)}; predicted, not proven"
    )


def _harm(chance: float | None) -> str:
    return "not known" if chance is None else share(chance)


def print_prediction(prediction: Prediction) -> None:
    """Print the setting, its expected gain and the reasons, at 80 columns."""
    answer, features = prediction.answer, prediction.features
    if prediction.composition is not None:
        _print_composition(prediction.composition)
    what = features.app or program_name(features.argv)
    if len(answer.setting):
        print_line(f"Predicted for {what} on {features.ranks} ranks:", bold=True)
        lines = {name: f"  {name} = {value}" for name, value in answer.setting.to_json().items()}
        width = max(map(len, lines.values()))
        for name, line in lines.items():
            print_line(f"{line:{width}}{_why(answer, name)}")
        print_line(_expected_gain(answer))
    else:
        print_line(f"Predicted for {what} on {features.ranks} ranks: the default.", bold=True)
        if answer.unsure:
            print_line(
                f"best score: {short_setting(answer.best.to_json())} (expected gain "
                f"{percent(answer.best_gain)}); not recommended, because {answer.unsure}"
            )
    _print_over_decomposition(prediction)
    if prediction.composition is not None:
        _print_notes(prediction)
        return
    rows = [
        [n.cell, f"{n.distance:.2f}", short_setting(n.best.to_json()), percent(n.gain)]
        for n in prediction.near
    ]
    print_table("", ["nearest program", ">distance", "its best setting", ">gain"], rows)
    if answer.far:
        print_line(
            note_line(
                "model.far",
                "this program is far from all known ones: distance "
                f"{answer.distance:.2f}, but the model was validated up to "
                f"{prediction.model.predictor.reach:.2f}; its predictions there are guesses",
            )
        )
    _print_notes(prediction)


def _print_over_decomposition(prediction: Prediction) -> None:
    """What hiding communication behind tasks could bring, if it is worth a search."""
    room = over_decomposition(prediction.features)
    if room.most_gain < WORTH:
        return
    where = (
        f"its layout is varied by --space {' or '.join(map(_space_words, room.spaces))}"
        if room.spaces
        else "no form of it with tasks is known here"
    )
    print_line(
        f"over-decomposition that hides all communication would gain {share(room.most_gain)} at "
        f"most; {where}"
    )


def _space_words(name: str) -> str:
    return f"{name} ({', '.join(models_of_space(name))})"


def _print_notes(prediction: Prediction) -> None:
    for note in prediction.strange:
        print_note(note)


WORTH = 0.05
"""A program whose largest possible gain is below this is not worth a search."""
_NAMES = {
    "pingpong": "messages one at a time",
    "exchange": "messages to neighbours",
    "bw": "many messages at once",
}


def _print_composition(answer: ComposedAnswer) -> None:
    """What dominates the program, and what any setting can gain at most."""
    parts = [
        f"{_NAMES.get(work.operation, work.operation)}"
        + (f" of {size_words(work.size)}" if work.size else "")
        + f" {share(part)}"
        for work, part in answer.parts[:3]
        if part >= 0.005
    ]
    dominants = ", ".join(parts) or "nothing of note"
    print_line(
        f"{share(answer.responds)} of the run responds to settings: {dominants}; the rest is "
        "computing and waiting"
    )
    if answer.moved is not None:
        print_line(
            f"{share(answer.moved.before)} of its messages go between nodes, with map_by=node "
            f"{share(answer.moved.after)}"
        )
    worth = ": not worth a search" if answer.most < WORTH else ""
    print_line(f"any setting can gain at most {share(answer.most)}{worth}")


def _why(answer: NamedSetting, name: str) -> str:
    """The expected effect of one parameter, "" if the model cannot say it."""
    if name not in answer.why:
        return ""
    effect = answer.why[name]
    share = f"{100 * effect.touched:.0f} %"
    return f"  affects {share} of the run: {percent(math.expm1(effect.log))} time"


def print_prediction_file(
    prediction: NamedSetting,
    proof: PredictionCheck | None,
    params_path: Path | None,
    params_file: Path | None,
    check: bool,
) -> None:
    """Print the parameter file that was written, or why there is none.

    ``check``: the prediction was to be checked; ``proof``: it was.
    """
    if check and proof is None:
        print_line("nothing to check: no gain is expected of any setting")
    if params_path is not None:
        print_line(f"parameter file: mpirun --tune {shlex.quote(str(params_path))} ...", whole=True)
    elif params_file is not None and proof is None and not len(prediction.setting):
        print_line(
            f"{params_file} not written: the predicted setting is the default, which needs no file"
        )
    elif params_file is not None and proof is not None:
        print_line(f"{params_file} not written: {proof.why_not}", whole=True)
