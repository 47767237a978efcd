"""``autotune importance``: which parameters mattered in a study or a dataset."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from autotune.anova.importance import (
    Importance,
    Matter,
    Near,
    around_best,
    best_cells,
    importance,
)
from autotune.anova.sources import STUDY, read_table
from autotune.anova.table import Table
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.render import console, table, write_json, write_text
from autotune.datasets.place import is_known
from autotune.errors import UsageError
from autotune.report.figures import Mark, bars, dots
from autotune.report.page import drawn_page

SHOWN_PAIRS = 5
LANDSCAPES = 3
DRAWN = 4


def importance_of(
    source: Annotated[
        str, typer.Argument(metavar="STUDY|DATASET", help="A study, or recorded runs.")
    ],
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="KEY", help="One cell of a dataset only.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.html", help="Shares and landscapes, drawn."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Parameters to list.")
    ] = 15,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0)] = 0,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Say which parameters mattered, with intervals, and how the best setting's neighbours do."""
    found = read_table(_source(source), store)
    if cell is not None:
        found = _only(found, cell)
    result = importance(found, seed)
    names = [m.name for m in result.parameters[:DRAWN]]
    near = {key: around_best(found, key, names, seed) for key in best_cells(found, LANDSCAPES)}
    if picture is not None:
        write_text(picture, _page(found, result, near))
    if json_out:
        data = {
            "schema": "autotune-importance-1",
            "source": found.origin,
            "cells": list(found.cells),
            "rows": result.rows,
            "r2_unseen": result.r2,
            "parameters": [m.to_json() for m in result.parameters],
            "pairs": [vars(pair) for pair in result.pairs],
            "around_best": {
                key: [
                    {**vars(n), "ratio": n.ratio if math.isfinite(n.ratio) else None} for n in steps
                ]
                for key, steps in near.items()
            },
            "notes": list(result.notes),
        }
        write_json(data, json_out)
    if json_out != "-":
        _print(found, result, limit)
        if picture is not None:
            console().print(f"wrote {picture}", markup=False)


def _source(given: str) -> str:
    """A dataset where there is one of that name, else a study."""
    if given.startswith(STUDY):
        return given
    if is_known(given):
        return given
    return given if Path(given).is_dir() else f"{STUDY}{given}"


def _only(found: Table, cell: str) -> Table:
    if cell not in found.cells:
        raise UsageError(
            f"{found.origin} has no cell {cell!r}; its cells: {', '.join(found.cells)}"
        )
    return found.where(lambda place: place.key == cell)


def _print(found: Table, result: Importance, limit: int) -> None:
    out = console()
    out.print(
        f"{found.origin}: {result.rows} rows (setting x cell), {len(found.cells)} cells; the "
        f"forest explains {max(result.r2, 0):.0%} of settings it has not seen",
        markup=False,
    )
    for note in result.notes:
        out.print(f"note: {note}", markup=False)
    rows = [_row(m) for m in result.parameters[:limit]]
    columns = ["parameter", ">shuffled", ">95 %", ">alone", ">Pearson", ">rank"]
    title = "share of the variance (* certainly above 0; shuffled: with all it does)"
    out.print(table(title, columns, rows))
    strong = [pair for pair in result.pairs if pair.share >= 0.01][:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.share:.1%}", f"{p.lo:.1%} .. {p.hi:.1%}"]
            for p in strong
        ]
        out.print(table("beyond their own effects", ["pair", ">share", ">95 %"], rows))


def _row(m: Matter) -> list[str]:
    return [
        m.name + ("*" if m.certain else ""),
        f"{max(m.shuffled, 0):.1%}",
        f"{m.shuffled_lo:.1%} .. {m.shuffled_hi:.1%}",
        f"{m.alone:.1%}",
        "-" if m.pearson is None else f"{m.pearson:+.2f}",
        "-" if m.spearman is None else f"{m.spearman:+.2f}",
    ]


def _page(found: Table, result: Importance, near: dict[str, list[Near]]) -> str:
    weights = [
        Mark(m.name, m.shuffled, m.shuffled_lo, m.shuffled_hi, f"alone {m.alone:.1%}", m.certain)
        for m in result.parameters[:20]
    ]
    drawings = [bars("Which parameters mattered", "share of the variance, 95 % interval", weights)]
    for key, steps in near.items():
        for name in dict.fromkeys(step.parameter for step in steps):
            drawings.append(_landscape(key, name, [s for s in steps if s.parameter == name]))
    words = [
        f"{found.origin}: {result.rows} rows, {len(found.cells)} cells.",
        "Around the best setting one parameter is changed and all others are kept.",
        *result.notes,
    ]
    return drawn_page(f"Importance: {found.origin}", words, drawings)


def _landscape(cell: str, name: str, steps: list[Near]) -> str:
    marks = [
        Mark(
            step.level,
            step.ratio if math.isfinite(step.ratio) else math.nan,
            math.nan,
            math.nan,
            "measured" if step.measured else "model",
            step.here,
        )
        for step in steps
    ]
    return dots(f"{cell}: {name}", "T / T default around the best setting (blue)", marks, 1.0)
