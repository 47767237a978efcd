"""Terminal output of a prediction."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.terminal.render import console, table
from autotune.wording import percent, short_setting

if TYPE_CHECKING:
    from autotune.api.predict import Prediction
    from autotune.prediction import NamedSetting


def _expected(named: NamedSetting) -> str:
    if named.gain is None or named.interval is None:
        return "a start for a search: no gain is known here"
    low, high = (percent(end) if end < 100 else "?" for end in named.interval)
    return (
        f"expected gain {percent(named.gain)} (95 % of similar programs: {low} to {high}); "
        "predicted, not proven"
    )


def print_prediction(found: Prediction) -> None:
    """Print the setting, its expected gain and the reasons, at 80 columns."""
    out = console()
    named, features = found.named, found.features
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
    rows = [
        [n.cell, f"{n.distance:.2f}", short_setting(n.best.to_json()), percent(n.gain)]
        for n in found.near
    ]
    out.print(table("", ["nearest program", ">distance", "its best setting", ">gain"], rows))
    if named.far:
        out.print(
            "warning: this program is far from all known ones: distance "
            f"{named.distance:.2f}, but the model was validated up to "
            f"{found.model.predictor.reach:.2f}; its predictions there are guesses",
            markup=False,
        )
    if found.strange:
        out.print(f"note: {'; '.join(found.strange)}", markup=False)


def _why(named: NamedSetting, name: str) -> str:
    """The expected effect of one parameter, "" if the model cannot say it."""
    if name not in named.why:
        return ""
    effect = named.why[name]
    share = f"{100 * effect.touched:.0f} %"
    return f"  affects {share} of the run: {percent(math.expm1(effect.log))} time"
