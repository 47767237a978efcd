"""``autotune train``: a model from recorded runs and the features of their programs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options as o
from autotune.cli.predict import read_features
from autotune.cli.progress import Status
from autotune.cli.render import console, table, write_json, write_text
from autotune.errors import UsageError

From = Annotated[
    list[str] | None,
    typer.Option(
        "--from", metavar="DATASET", help="A recorded dataset (name or folder); may be repeated."
    ),
]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="S", help="Only cells of this split: design or report."),
]


def train(
    sources: From = None,
    store: o.StoreUrl = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(
            "--features",
            metavar="FILE",
            help="With --store: features of a program whose studies are learned from; repeated.",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", metavar="M", help="auto, knn, mlp, ranking or exposure.")
    ] = "auto",
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="thesis: the plain form of knn or mlp."),
    ] = None,
    split: Split = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: where autotune predict looks first."
        ),
    ] = None,
    json_out: o.JsonOut = None,
) -> None:
    """Train a model that predicts settings; which one, programs left out in turn decide."""
    import json

    from autotune.predict import default_place, model_of, training_set
    from autotune.predict import train as fit

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
    o.check_writable(place)
    with ExitStack() as stack:
        folders: list[str] = list(sources or [])
        if not folders:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folders = [str(_from_store(store, features or [], scratch / "store"))]
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
    from autotune.predict import CHOICES, THESIS

    if model != "auto" and model not in CHOICES:
        raise UsageError(f"--model {model!r}: there are auto, {', '.join(CHOICES)}")
    if preset is None:
        return CHOICES if model == "auto" else (model,)
    if preset != "thesis":
        raise UsageError(f"--preset {preset!r}: there is only thesis")
    if model not in THESIS:
        raise UsageError(f"--preset thesis needs --model {' or '.join(THESIS)}, not {model}")
    return (THESIS[model],)


def _from_store(store: str | None, files: Sequence[Path], folder: Path) -> Path:
    """The studies of the traced programs as a dataset with features."""
    from autotune.cli.dataset_commands import source_of
    from autotune.datasets.exchange import export
    from autotune.store import Store
    from runner.trace import Features

    if not files:
        raise UsageError(
            "nothing to learn from: autotune train --from DATASET, or\n"
            "autotune train --store URL --features FILE --features FILE ..."
        )
    traced: dict[tuple[str | None, str | None, int], tuple[Path, Features]] = {}
    for path in files:
        found = read_features(path)
        traced[(found.app, found.input, found.ranks)] = (path, found)
    with Store.open_to_read(store) as opened:
        listed = [opened.get_study(line.id) for line in opened.studies()]
        studies = [s for s in listed if (s.key.app.name, s.key.app.input, s.key.ranks) in traced]
        if not studies:
            raise UsageError(
                "the results database has no study of a program with these features "
                f"({', '.join(str(app) for app, _, _ in traced)}); see: autotune studies"
            )
        made = export([source_of(study, None) for study in studies], opened, folder)
    for cell in made.cells:
        found = traced[(cell.app, cell.input or None, cell.ranks)][1]
        place = folder / "features" / f"{cell.key}.json"
        place.parent.mkdir(exist_ok=True)
        found.save(place)
    return folder
