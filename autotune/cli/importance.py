"""``autotune importance``: which parameters mattered in a study or a dataset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from autotune.anova.evidence import Evidence, study_evidence
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
from autotune.cli.anova import SourceOption, one_source
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.predict import read_features
from autotune.cli.render import console, table, write_json, write_text
from autotune.datasets import load
from autotune.datasets.place import is_known
from autotune.errors import UsageError, WorkError
from autotune.report.figures import Mark, bars, dots
from autotune.report.page import drawn_page
from autotune.store import Store
from autotune.words import count, percent

SHOWN_PAIRS = 5
LANDSCAPES = 3
DRAWN = 4


def importance_of(
    argument: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY|DATASET", help="A study, or recorded runs.", show_default=False
        ),
    ] = None,
    from_: SourceOption = None,
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
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            metavar="FILE",
            help="From autotune features: parameters that the program does not use are left out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0)] = 0,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Say which parameters mattered, with intervals, and how the best setting's neighbours do."""
    wanted = _source(one_source(argument, from_, "importance STUDY|DATASET"))
    found = read_table(wanted, store)
    if cell is not None:
        found = _only(found, cell)
    known = _evidence(wanted, store)
    gone = {*known.unused, *_untouched(wanted, found, features)} - set(known.proven)
    gone &= set(found.names)
    found = found.without(gone)
    try:
        result = importance(found, seed, known.proven)
    except WorkError as problem:
        if not known.proven:
            raise
        raise WorkError(f"{problem}.\n{_proof_words(known)}") from None
    notes = [note for note in (*result.notes, found.unguarded) if note]
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
            "proven_gain": known.gain if known.proven else None,
            "taken_out": list(known.taken_out),
            "unused": sorted(gone),
            "parameters": [m.to_json() for m in result.parameters],
            "pairs": [vars(pair) for pair in result.pairs],
            "around_best": {
                key: [
                    {**vars(n), "ratio": n.ratio if math.isfinite(n.ratio) else None} for n in steps
                ]
                for key, steps in near.items()
            },
            "notes": notes,
        }
        write_json(data, json_out)
    if json_out != "-":
        _print(found, result, limit, known, sorted(gone))
        if picture is not None:
            console().print(f"wrote {picture}", markup=False)


def _source(given: str) -> str:
    """A dataset where there is one of that name, else a study."""
    if given.startswith(STUDY):
        return given
    if is_known(given):
        return given
    return given if Path(given).is_dir() else f"{STUDY}{given}"


def _evidence(wanted: str, store: str | None) -> Evidence:
    """What the proof and the read-back of a study showed; nothing for a dataset."""
    if not wanted.startswith(STUDY):
        return Evidence()
    with Store.open_existing(store) as opened:
        return study_evidence(opened, opened.find_study(wanted.removeprefix(STUDY)))


def _untouched(wanted: str, found: Table, features: Path | None) -> tuple[str, ...]:
    """Parameters that act on nothing in what was traced: by the file that is given, else by those
    that a dataset holds, where it has one for each of the cells."""
    from autotune.predict.exposure import unused
    from autotune.predict.scaling import described
    from autotune.predict.sources import features_of

    if features is not None:
        traced = [read_features(features)]
    elif wanted.startswith(STUDY):
        return ()
    else:
        recorded = load(wanted)
        cells = [features_of(recorded, recorded.cell(key)) for key in found.cells]
        traced = [one for one in cells if one is not None]
        if len(traced) < len(cells):
            return ()
    return unused(found.names, [described(one) for one in traced])


def _proof_words(known: Evidence) -> str:
    return (
        f"What the study's proof shows all the same: {', '.join(known.proven)} "
        f"{'matters' if len(known.proven) == 1 else 'each matter'} "
        f"(together {percent(known.gain)})"
    )


def _only(found: Table, cell: str) -> Table:
    if cell not in found.cells:
        raise UsageError(
            f"{found.origin} has no cell {cell!r}; its cells: {', '.join(found.cells)}"
        )
    only = found.where(lambda place: place.key == cell)
    # Parameters that other cells vary are none of this one's.
    return only.without([name for name in only.names if len(set(only.codes(name))) < 2])


def _print(
    found: Table, result: Importance, limit: int, known: Evidence, gone: Sequence[str]
) -> None:
    out = console()
    out.print(
        f"{found.origin}: {result.rows} rows (setting x cell), {count(len(found.cells), 'cell')}; "
        f"the forest explains {max(result.r2, 0):.0%} of the variance of settings it has not seen",
        markup=False,
    )
    for note in filter(None, [*result.notes, found.unguarded]):
        out.print(f"note: {note}", markup=False)
    # A search does not draw at random: what came along with a good parameter looks good as well.
    chosen = found.origin.startswith("study")
    listed = sorted(result.parameters, key=lambda m: not m.certain and chosen)
    rows = [_row(m, chosen) for m in listed[:limit]]
    columns = ["parameter", ">shuffled", ">95 %", ">alone", ">Pearson", ">rank"]
    which = "the variance, where it is certain" if chosen else "the variance"
    title = f"share of {which} (shuffled: with all it does)"
    out.print(table(title, columns, rows))
    signs = {"*": "certainly above 0", "!": "shown by the proof"}
    used = [f"{s} {w}" for s, w in signs.items() if any(row[0].endswith(s) for row in rows)]
    out.print("; ".join(used) or "no parameter is certain: the runs tell too little", markup=False)
    if known.proven:
        out.print(f"proven: {percent(known.gain)} with {', '.join(known.proven)}", markup=False)
    if known.taken_out:
        words = "taken out of the proven setting, no slower without"
        out.print(f"{words}: {', '.join(known.taken_out)}", markup=False)
    if gone:
        out.print(f"not used by the program, so left out: {', '.join(gone)}", markup=False)
    sure = {m.name for m in result.parameters if m.certain or not chosen}
    strong = [p for p in result.pairs if p.share >= 0.01 and {p.first, p.second} <= sure]
    strong = strong[:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.share:.1%}", f"{p.lo:.1%} .. {p.hi:.1%}"]
            for p in strong
        ]
        out.print(table("beyond their own effects", ["pair", ">share", ">95 %"], rows))


def _row(m: Matter, chosen: bool) -> list[str]:
    """``chosen``: the settings were, so a share that chance may have made is not shown."""
    return [
        m.name + ("!" if m.proven else "*" if m.certain else ""),
        f"{max(m.shuffled, 0):.1%}" if m.shuffled_lo > 0 or not chosen else "-",
        f"{m.shuffled_lo:.1%} .. {m.shuffled_hi:.1%}",
        f"{m.alone:.1%}" if m.certain or not chosen else "-",
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
