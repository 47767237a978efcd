"""``autotune train``: a model from recorded runs and the features of their programs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from autotune.api.train import dataset_of_traced
from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.errors import UsageError
from autotune.files import check_writable, write_text
from autotune.terminal.progress import Status
from autotune.terminal.render import console, table, write_json

From = Annotated[
    list[str] | None, opt("--from DATASET", "A recorded dataset (name or folder); may be repeated.")
]
Split = Annotated[str | None, opt("--split S", "Only cells of this split: design or report.")]


Named = Annotated[
    list[str] | None, typer.Argument(metavar="[DATASET]...", help="The same as --from DATASET.")
]


def train(
    datasets: Named = None,
    sources: From = None,
    store: o.StoreUrl = None,
    features: Annotated[
        list[Path] | None,
        opt(
            "--features FILE",
            "With --store: features of a program whose studies are learned from; repeated.",
        ),
    ] = None,
    model: Annotated[str, opt("--model M", "auto, knn, mlp, ranking or exposure.")] = "auto",
    preset: Annotated[
        str | None, opt("--preset NAME", "thesis: the plain form of knn or mlp.")
    ] = None,
    split: Split = None,
    out: Annotated[
        Path | None, opt("--output -o FILE", "Default: where autotune predict looks first.")
    ] = None,
    json_out: o.JsonOut = None,
) -> None:
    """Train a model that predicts settings; which one, programs left out in turn decide."""
    import json

    from autotune.prediction import default_place, model_of, training_set
    from autotune.prediction import train as fit

    kinds = _kinds(model, preset)
    place = out or default_place()
    if out is None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UsageError(
                f"cannot write {place}: {problem.strerror}: {problem.filename}; name another place "
                "(-o FILE)"
            ) from None
    check_writable(place)
    with ExitStack() as stack:
        folders = [*(datasets or []), *(sources or [])]
        if not folders:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folders = [str(dataset_of_traced(store, features or [], scratch / "store"))]
        elif features:
            raise UsageError(
                "--features goes with --store; a dataset has its own, in its folder features"
            )
        data = training_set(folders, split)
        with Status(json_out == "-") as say:
            done = [fit(kind, data.examples, data.defaults, watch=say) for kind in kinds]
        best = min(done, key=lambda t: t.cost)
        made = model_of(best, data, {t.kind: t.cost for t in done})
    write_text(place, json.dumps(made.to_json(), allow_nan=False) + "\n")
    told = {
        "schema": "autotune-training-1",
        "model": str(place),
        "kind": best.kind,
        "options": dict(best.options),
        "cost": {t.kind: t.cost for t in done},
        "cells": len(data.examples),
        "programs": list(data.apps),
        "settings": len(made.settings) - 1,
        "data": data.hash,
        "notes": list(data.notes),
    }
    if json_out:
        write_json(told, json_out)
    if json_out == "-":
        return
    shown = console()
    shown.print(
        f"{len(data.examples)} cells of {len(data.apps)} programs, {len(made.settings) - 1} "
        "settings",
        markup=False,
    )
    rows = [[t.kind, f"{-t.cost * 100:+.1f} %", _options(t.options)] for t in done]
    shown.print(table("", ["model", ">on programs left out", "options chosen there"], rows))
    for note in data.notes:
        shown.print(f"note: {note}", markup=False)
    shown.print(f"{best.kind} written to {place}", markup=False, soft_wrap=True)


def _options(options: object) -> str:
    return ", ".join(f"{k}={v}" for k, v in dict(options).items())  # type: ignore[call-overload]


def _kinds(model: str, preset: str | None) -> tuple[str, ...]:
    from autotune.prediction import CHOICES, THESIS

    if model != "auto" and model not in CHOICES:
        raise UsageError(f"--model {model!r}: there are auto, {', '.join(CHOICES)}")
    if preset is None:
        return CHOICES if model == "auto" else (model,)
    if preset != "thesis":
        raise UsageError(f"--preset {preset!r}: there is only thesis")
    if model not in THESIS:
        raise UsageError(f"--preset thesis needs --model {' or '.join(THESIS)}, not {model}")
    return (THESIS[model],)
