"""``autotune anova``: which parameters matter for a class of programs, and their best levels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from autotune.anova.factors import CORRECTIONS, MODELS, Factor
from autotune.anova.stability import WAYS, Part, shown_level, unstable
from autotune.api.anova import Analysis, analyse, read_options
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.render import console, table, write_json
from autotune.words import percent

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
    found = analyse(
        source, options, response=response, by=by, pairs=pairs, joint=joint, store=store
    )
    if picture is not None:
        write_text(picture, found.page())
    if json_out:
        write_json(found.to_json(), json_out)
    if json_out != "-":
        _print(found)
        _print_parts(found.parts, found.factors)
        for note in found.notes:
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


def _print(found: Analysis) -> None:
    out = console()
    factors, crossed, fitted = found.factors, found.crossed, found.fitted
    for line in found.headline:
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
