"""``autotune train``: a model from recorded runs and the features of their programs."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.api.features import read_features
from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.cli.progress import Status
from autotune.cli.render import console, error_console, table, write_json
from autotune.errors import UsageError
from autotune.files import check_writable, write_text

if TYPE_CHECKING:
    from autotune.store import Study
    from runner.trace import Features

_NO_SEARCH = ("run", "noise", "compare")
"""Studies of single settings: nothing to learn from."""
Launch = tuple[str | tuple[str, ...], str | None, int, str]
"""A name or a command line, the input, the ranks, and the MPI."""
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


def _from_store(store: str | None, files: Sequence[Path], folder: Path) -> Path:
    """The studies of the traced programs as a dataset with features."""
    from autotune.cli.dataset_commands import source_of
    from autotune.datasets.exchange import export
    from autotune.store import Store

    if not files:
        raise UsageError(
            "nothing to learn from: autotune train --from DATASET, or\n"
            "autotune train --store URL --features FILE --features FILE ..."
        )
    traced = {_launch_of(found): found for found in map(read_features, files)}
    with Store.open_to_read(store) as opened:
        listed = [opened.get_study(line.id) for line in opened.studies()]
        # A name is that of a known application only where the features have it: a program of the
        # command line is told by its words.
        of_study = {s.hash: next((k for k in _launches_of(s) if k in traced), None) for s in listed}
        studies = [s for s in listed if of_study[s.hash] and s.key.strategy not in _NO_SEARCH]
        sources, problems = [], []
        for study in studies:
            try:
                sources.append(source_of(study, None))
            except UsageError as problem:
                problems.append(str(problem))
        if not sources:
            names = ", ".join(
                f"{_what(found)} on {found.ranks} ranks with {found.mpi_name}"
                for found in traced.values()
            )
            raise UsageError(
                "the results database has no search of a program with these features "
                f"({names}); see: autotune studies" + "".join(f"\n{said}" for said in problems)
            )
        for said in problems:
            error_console().print(f"left out: {said}", markup=False)
        made = export(sources, opened, folder)
    for cell, source in zip(made.cells, sources, strict=True):
        launch = of_study[source.study.hash]
        assert launch is not None
        place = folder / "features" / f"{cell.key}.json"
        place.parent.mkdir(exist_ok=True)
        traced[launch].save(place)
    return folder


def _launch_of(found: Features) -> Launch:
    """What was traced: an application's name and input, or a command line; its ranks and MPI."""
    mpi = f"{found.mpi_name} {found.mpi_version}"
    if found.app is None:
        return (tuple(found.argv), None, found.ranks, mpi)
    return (found.app, found.input, found.ranks, mpi)


def _launches_of(study: Study) -> tuple[Launch, Launch]:
    app, ranks, mpi = study.key.app, study.key.ranks, study.key.mpi
    library = f"{mpi.family} {mpi.version}"
    line = (app.program, *app.argv)
    return (app.name, app.input, ranks, library), (line, None, ranks, library)


def _what(found: Features) -> str:
    return found.app or shlex.join(found.argv)
