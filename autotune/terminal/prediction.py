"""Terminal output of a prediction."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.terminal.render import console, note_line, table
from autotune.wording import percent, share, short_setting, size_words

if TYPE_CHECKING:
    from autotune.api.predict import Prediction
    from autotune.prediction import NamedSetting
    from autotune.prediction.composed import ComposedAnswer


def _expected(named: NamedSetting) -> str:
    if named.gain is None or named.interval is None:
        return "a start for a search: no gain is known here"
    low, high = (percent(end) if end < 100 else "over +10000 %" for end in named.interval)
    return (
        f"expected gain {percent(named.gain)} (95 % of similar programs: {low} to {high}); "
        f"chance of being slower {_harm(named.harm)}; predicted, not proven"
    )


def _harm(chance: float | None) -> str:
    return "not known" if chance is None else share(chance)


def print_prediction(found: Prediction) -> None:
    """Print the setting, its expected gain and the reasons, at 80 columns."""
    out = console()
    named, features = found.named, found.features
    if found.composed is not None:
        _print_composed(found.composed)
    what = features.app or Path(features.argv[0]).name
    if len(named.setting):
        out.print(f"Predicted for {what} on {features.ranks} ranks:", style="bold", markup=False)
        lines = {name: f"  {name} = {value}" for name, value in named.setting.to_json().items()}
        width = max(map(len, lines.values()))
        for name, line in lines.items():
            out.print(f"{line:{width}}{_why(named, name)}", markup=False)
        out.print(_expected(named), markup=False)
    else:
        out.print(
            f"Predicted for {what} on {features.ranks} ranks: the default.",
            style="bold",
            markup=False,
        )
        if named.unsure:
            out.print(
                f"best score: {short_setting(named.best.to_json())} (expected gain "
                f"{percent(named.best_gain)}); not recommended, because {named.unsure}",
                markup=False,
            )
    if found.composed is not None:
        _print_notes(found)
        return
    rows = [
        [n.cell, f"{n.distance:.2f}", short_setting(n.best.to_json()), percent(n.gain)]
        for n in found.near
    ]
    out.print(table("", ["nearest program", ">distance", "its best setting", ">gain"], rows))
    if named.far:
        out.print(
            note_line(
                "model.far",
                "this program is far from all known ones: distance "
                f"{named.distance:.2f}, but the model was validated up to "
                f"{found.model.predictor.reach:.2f}; its predictions there are guesses",
            ),
            markup=False,
        )
    _print_notes(found)


def _print_notes(found: Prediction) -> None:
    for note in found.strange:
        console().print(note_line(note.code, note.words), markup=False)


WORTH = 0.05
"""A program whose largest possible gain is below this is not worth a search."""
_NAMES = {
    "pingpong": "messages one at a time",
    "exchange": "messages to neighbours",
    "bw": "many messages at once",
}


def _print_composed(answer: ComposedAnswer) -> None:
    """What dominates the program, and what any setting can gain at most."""
    out = console()
    parts = [
        f"{_NAMES.get(work.operation, work.operation)}"
        + (f" of {size_words(work.size)}" if work.size else "")
        + f" {share(part)}"
        for work, part in answer.parts[:3]
        if part >= 0.005
    ]
    listed = ", ".join(parts) or "nothing of note"
    out.print(
        f"{share(answer.responds)} of the run responds to settings: {listed}; the rest is "
        "computing and waiting",
        markup=False,
    )
    if answer.moved is not None:
        out.print(
            f"{share(answer.moved.before)} of its messages go between nodes, with map_by=node "
            f"{share(answer.moved.after)}",
            markup=False,
        )
    worth = ": not worth a search" if answer.most < WORTH else ""
    out.print(f"any setting can gain at most {share(answer.most)}{worth}", markup=False)


def _why(named: NamedSetting, name: str) -> str:
    """The expected effect of one parameter, "" if the model cannot say it."""
    if name not in named.why:
        return ""
    effect = named.why[name]
    share = f"{100 * effect.touched:.0f} %"
    return f"  affects {share} of the run: {percent(math.expm1(effect.log))} time"
