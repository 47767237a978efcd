"""A prediction in words for the terminal, and as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli.render import console, table
from autotune.words import percent, short_setting

if TYPE_CHECKING:
    from autotune.prediction import Model, Named, Neighbour
    from runner.trace import Features


def strange_here(model: Model, features: Features, no_mpi: bool) -> list[str]:
    """Why what the model learned may not hold here, one reason an entry."""
    from runner.machine import describe

    found = []
    here, about = describe().fingerprint, model.about
    if here not in about.machines:
        found.append("the model was trained on another machine")
    elif features.machine["fingerprint"] != here:
        found.append("the program was traced on another machine")
    mpi = f"{features.mpi_name} {features.mpi_version}"
    if mpi not in about.mpis:
        found.append(
            f"the program was traced with {mpi}, the model was trained with "
            f"{', '.join(about.mpis) or 'an unknown MPI'}"
        )
    if no_mpi:
        found.append("no MPI was found here: the setting was not checked against a library")
    return found


def print_prediction(
    named: Named, near: list[Neighbour], strange: list[str], features: Features, model: Model
) -> None:
    """The setting, what is expected of it and why, at 80 columns."""
    out = console()
    what = features.app or Path(features.argv[0]).name
    if len(named.setting) and named.gain is not None and named.interval is not None:
        low, high = (percent(end) if end < 100 else "?" for end in named.interval)
        out.print(f"Predicted for {what} on {features.ranks} ranks:", style="bold", markup=False)
        lines = {name: f"  {name} = {value}" for name, value in named.setting.to_json().items()}
        width = max(map(len, lines.values()))
        for name, line in lines.items():
            out.print(f"{line:{width}}{_why(named, name)}", markup=False)
        out.print(
            f"expected gain {percent(named.gain)}, 95 % of such programs {low} to {high}; "
            "predicted, not proven",
            markup=False,
        )
    else:
        out.print(
            f"Predicted for {what} on {features.ranks} ranks: the default.",
            style="bold",
            markup=False,
        )
        if named.unsure:
            out.print(
                f"best by score: {short_setting(named.best.to_json())} "
                f"({percent(named.best_gain)} expected); not named, because {named.unsure}",
                markup=False,
            )
    rows = [
        [n.cell, f"{n.distance:.2f}", short_setting(n.best.to_json()), percent(n.gain)]
        for n in near
    ]
    out.print(table("", ["nearest program", ">distance", "its best setting", ">gain"], rows))
    if named.far:
        out.print(
            f"warning: far from everything known: distance {named.distance:.2f}, the model was "
            f"checked up to {model.predictor.reach:.2f}; predictions there are guesses",
            markup=False,
        )
    if strange:
        out.print(f"note: {'; '.join(strange)}", markup=False)


def _why(named: Named, name: str) -> str:
    """What the model expects of one parameter, "" where it cannot tell."""
    if name not in named.why:
        return ""
    effect = named.why[name]
    share = f"{100 * effect.touched:.0f} %"
    return f"  acts on {share} of the run: {percent(math.expm1(effect.log))} time"


def to_json(
    named: Named, near: list[Neighbour], strange: list[str], features: Features, model: Model
) -> dict[str, Any]:
    """The same as JSON types; the caller adds ``check`` and ``params_file``."""
    interval = None
    if named.interval is not None:
        interval = [named.interval[0], named.interval[1] if named.interval[1] < 1e6 else None]
    return {
        "schema": "autotune-prediction-1",
        "setting": named.setting.to_json(),
        "expected_gain": named.gain,
        "gain_interval95": interval,
        "best_scored": named.best.to_json(),
        "best_scored_gain": named.best_gain,
        "unsure": named.unsure or None,
        "why": {
            name: {"share_of_run_time": effect.touched, "time": math.exp(effect.log)}
            for name, effect in named.why.items()
        },
        "distance": named.distance,
        "reach": model.predictor.reach,
        "far": named.far,
        "neighbours": [
            {"cell": n.cell, "distance": n.distance, "best": n.best.to_json(), "gain": n.gain}
            for n in near
        ],
        "foreign": strange,
        "app": features.app,
        "input": features.input,
        "ranks": features.ranks,
        "model": {
            "place": model.place,
            "kind": model.about.kind,
            "data": model.about.data_hash,
            "machines": list(model.about.machines),
            "mpis": list(model.about.mpis),
        },
    }
