"""``autotune anova``: which parameters matter for a class of programs, and their best levels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, cast

import typer

from autotune.anova.diagnostics import diagnose
from autotune.anova.factors import (
    CORRECTIONS,
    MODELS,
    Correction,
    Factor,
    Model,
    Options,
    judge,
    recommended,
)
from autotune.anova.interactions import Interaction, interactions
from autotune.anova.mixed import Fit, fit
from autotune.anova.response import RESPONSES, Response, Values, respond
from autotune.anova.sources import read_table
from autotune.anova.stability import WAYS, By, Part, shown_level, stability, unstable
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.render import console, table, write_json
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.report.levels import level_means
from autotune.report.page import drawn_page
from autotune.space import Setting
from autotune.words import percent

PRESETS = ("thesis", "careful")
SIGN = 0.5
"""Corrected p from which a parameter is only named among those without an effect."""
SHOWN_PAIRS = 5
SOURCE = "Dataset (name or folder) or study:ID."
SourceArgument = Annotated[
    str | None, typer.Argument(metavar="DATASET|study:ID", help=SOURCE, show_default=False)
]
SourceOption = Annotated[str | None, opt("--from DATASET", "The same, as train takes it.")]


def anova(
    argument: SourceArgument = None,
    from_: SourceOption = None,
    preset: Annotated[
        str,
        opt(
            "--preset P",
            "careful: mixed model, corrected for many parameters, better than the default. "
            "thesis: one-way, 99.9 %, highest mean.",
        ),
    ] = "careful",
    response: Annotated[
        str,
        opt(
            "--response R",
            "gain: share of the best known gain, null cells left out.  log: log of the "
            "ratio to the default, winsorised, all cells.",
        ),
    ] = "gain",
    model: Annotated[
        str | None, opt("--model M", f"{', '.join(MODELS)} (default: the preset's).")
    ] = None,
    level: Annotated[float, opt("--level PERCENT", "Confidence for one parameter.")] = 99.9,
    correction: Annotated[str | None, opt("--correction C", f"{', '.join(CORRECTIONS)}.")] = None,
    by: Annotated[str | None, opt("--by WAY", f"Stability over parts: {', '.join(WAYS)}.")] = None,
    pairs: Annotated[bool, opt("--pairs/--no-pairs", "Two-way interactions.")] = True,
    joint: Annotated[
        bool, opt("--joint", "All parameters that matter in one mixed model.")
    ] = False,
    picture: Annotated[Path | None, opt("--picture FILE.html", "Means of levels, drawn.")] = None,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Say which parameters matter over all programs of a dataset, and the best level of each."""
    source = one_source(argument, from_, "anova DATASET")
    options = read_options(preset, model, level, correction)
    kind = cast(Response, one_of("--response", response, RESPONSES))
    way = None if by is None else cast(By, one_of("--by", by, WAYS))
    found = read_table(source, store)
    values = respond(found, kind)
    factors = judge(values, options)
    parts = [] if way is None else stability(found, way, kind, options)
    strong = [f.name for f in factors if f.significant]
    crossed = interactions(values, found.names, level=options.level) if pairs else []
    fitted = fit(values, strong) if joint and strong else None
    notes = [*diagnose(values, options.model), *filter(None, [found.unguarded])]
    setting = recommended(factors)
    if picture is not None:
        words = [*_headline(values, options, setting), *notes]
        drawings = level_means(factors, kind)
        write_text(picture, drawn_page(f"Level means: {found.origin}", words, drawings))
    data = {
        "schema": "autotune-anova-1",
        "source": found.origin,
        "response": kind,
        "model": options.model,
        "level": options.level,
        "correction": options.correction,
        "rows": len(values.y),
        "cells": list(values.table.cells),
        "cells_left_out": list(values.left_out),
        "factors": [f.to_json() for f in factors],
        "setting": setting.to_json(),
        "interactions": [pair.to_json() for pair in crossed],
        "stability": [part.to_json() for part in parts],
        "joint": None if fitted is None else vars(fitted),
        "notes": notes,
    }
    if json_out:
        write_json(data, json_out)
    if json_out != "-":
        _print(values, options, factors, setting, crossed, fitted)
        _print_parts(parts, factors)
        for note in notes:
            console().print(f"note: {note}", markup=False)
        if picture is not None:
            console().print(f"wrote {picture}", markup=False)


def one_source(argument: str | None, option: str | None, example: str) -> str:
    """The source that was given as argument or as ``--from``; raises UsageError for none or two."""
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"{argument} and --from {option}: give one of them")
    source = argument if argument is not None else option
    if source is None:
        raise UsageError(f"which recorded runs?  autotune {example} (autotune dataset list)")
    return source


def one_of(option: str, given: str, known: tuple[str, ...]) -> str:
    """The word if it is known; raises UsageError otherwise."""
    if given not in known:
        raise UsageError(f"{option} {given!r} is not known; expected {', '.join(known)}")
    return given


def read_options(preset: str, model: str | None, level: float, correction: str | None) -> Options:
    """The options of the words; raises UsageError for a wrong one."""
    one_of("--preset", preset, PRESETS)
    if not 50 <= level < 100:
        raise UsageError(f"--level {level} is out of range; expected 50 to below 100, such as 99.9")
    thesis = preset == "thesis"
    chosen = one_of("--model", model or ("oneway" if thesis else "mixed"), MODELS)
    fixed = one_of("--correction", correction or ("none" if thesis else "holm"), CORRECTIONS)
    return Options(
        model=cast(Model, chosen),
        level=level / 100,
        correction=cast(Correction, fixed),
        against_default=not thesis,
    )


def _headline(values: Values, options: Options, setting: Setting) -> list[str]:
    table_ = values.table
    return [
        (
            f"{table_.origin}: {len(values.y)} rows (setting x cell), {len(table_.cells)} cells, "
            f"{len(table_.names)} parameters; {options.model} at {options.level * 100:g} %, "
            f"correction {options.correction}"
        ),
        f"setting: {setting.key.replace(',', ' ')}",
    ]


def _print(
    values: Values,
    options: Options,
    factors: list[Factor],
    setting: Setting,
    crossed: list[Interaction],
    fitted: Fit | None,
) -> None:
    out = console()
    for line in _headline(values, options, setting):
        out.print(line, markup=False, style="bold" if line.startswith("setting") else None)
    ordered = sorted(factors, key=lambda f: (f.p_corrected, -f.omega2))
    rows = [
        [
            factor.name,
            shown_level(factor),
            _p(factor.p_corrected),
            percent(factor.omega2).lstrip("+"),
            factor.why if factor.significant else "",
        ]
        for factor in ordered
        if factor.significant or factor.p_corrected < SIGN
    ]
    title = "value to set; – no certain effect, = the default is best"
    if rows:
        out.print(table(title, ["parameter", "value", ">p", ">explains", ""], rows))
    named: dict[str, list[str]] = {}
    for factor in ordered[len(rows) :]:
        judged = sum(level.judged for level in factor.levels) > 1
        words = f"no sign of an effect (p from {SIGN:g} on)" if judged else "not judged"
        named.setdefault(words, []).append(factor.name)
    for words, names in named.items():
        out.print(f"{words}: {', '.join(names)}", markup=False)
    strong = [pair for pair in crossed if pair.significant][:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.best[0]}, {p.best[1]}", _p(p.p_corrected)]
            for p in strong
        ]
        out.print(table("interactions", ["pair", "best together", ">p"], rows))
    if fitted is not None:
        rows = [
            [name, f"{effect:+.4f}", f"{fitted.errors[name]:.4f}"]
            for name, effect in fitted.effects.items()
        ]
        title = "all together, against the first level of each"
        out.print(table(title, ["level", ">effect", ">std. error"], rows))


def _print_parts(parts: list[Part], factors: list[Factor]) -> None:
    if not parts:
        return
    names = [f.name for f in factors if any(part.value(f.name) != "–" for part in parts)]
    rows = [[name, *(part.value(name) for part in parts)] for name in names]
    title = "the same on parts of the data (parameters never listed mattered in none)"
    console().print(table(title, ["parameter", *(part.name for part in parts)], rows))
    shaky = unstable(parts, names)
    words = f"not the same everywhere: {', '.join(shaky)}" if shaky else "values agree"
    console().print(words, markup=False)


def _p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<1e-9" if p < 1e-9 else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
