"""``autotune anova``: which parameters matter for a class of programs, and their best levels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.analysis_requests import AnovaRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.render import (
    print_line,
    print_note,
    print_table,
    write_json,
)
from autotune.wording import percent

if TYPE_CHECKING:
    from autotune.anova.factors import Factor
    from autotune.anova.stability import Subset
    from autotune.api.anova import Analysis


SIGN = 0.5
"""Parameters with a larger corrected p are only named in the list of those without an effect."""
SHOWN_PAIRS = 5


@takes_request
def anova(request: AnovaRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Find the parameters that matter over all programs, and the best level of each (ANOVA)."""
    from autotune.api.anova import analyse, read_options

    source = one_source(request.argument, request.source, "anova DATASET")
    options = read_options(request.preset, request.model, request.level, request.correction)
    found = analyse(
        source,
        options,
        response=request.response,
        by=request.by,
        pairs=request.pairs,
        joint=request.joint,
        store=store,
    )
    picture = request.picture
    if picture is not None:
        write_text(Path(picture), found.page())
    if json_out:
        write_json(found.document, json_out)
    if json_out != "-":
        _print(found)
        _print_parts(found.parts, found.factors)
        for note in found.notes:
            print_note(note)
        if picture is not None:
            print_line(f"wrote {picture}")


def one_source(argument: str | None, option: str | None, example: str) -> str:
    """The source, given as argument or with ``--from``; raises UsageError for none or both."""
    if argument is not None and option is not None and argument != option:
        raise UsageError(
            f"two sources given: {argument} and --from {option}; give only one of them",
            code="usage.source",
        )
    source = argument if argument is not None else option
    if source is None:
        raise UsageError(
            f"no recorded runs given; expected autotune {example} (autotune dataset list "
            "names the datasets)",
            code="usage.source",
        )
    return source


def _print(found: Analysis) -> None:
    from autotune.anova.stability import shown_level

    factors, crossed, fitted = found.factors, found.crossed, found.fitted
    for line in found.headline:
        print_line(line, bold=line.startswith("setting"))
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
    title = "value to set (–: no certain effect; =: the default is the best level)"
    if rows:
        print_table(title, ["parameter", "value", ">p", ">explains", ""], rows)
    named: dict[str, list[str]] = {}
    for factor in ordered[len(rows) :]:
        judged = sum(level.has_mean for level in factor.levels) > 1
        words = (
            f"no sign of an effect (p of {SIGN:g} or more)"
            if judged
            else "not tested (too few observations)"
        )
        named.setdefault(words, []).append(factor.name)
    for words, names in named.items():
        print_line(f"{words}: {', '.join(names)}")
    strong = [pair for pair in crossed if pair.significant][:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.best[0]}, {p.best[1]}", _p(p.p_corrected)]
            for p in strong
        ]
        print_table("interactions", ["pair", "best together", ">p"], rows)
    if fitted is not None:
        rows = [
            [name, f"{effect:+.4f}", f"{fitted.errors[name]:.4f}"]
            for name, effect in fitted.effects.items()
        ]
        title = "joint mixed model: effect of each level against the first level of its parameter"
        print_table(title, ["level", ">effect", ">std. error"], rows)


def _print_parts(parts: list[Subset], factors: list[Factor]) -> None:
    from autotune.anova.stability import unstable

    if not parts:
        return
    names = [f.name for f in factors if any(part.value(f.name) != "–" for part in parts)]
    rows = [[name, *(part.value(name) for part in parts)] for name in names]
    title = "the same analysis on parts of the data (only parameters that matter in some part)"
    print_table(title, ["parameter", *(part.name for part in parts)], rows)
    shaky = unstable(parts, names)
    words = (
        f"best value differs between parts: {', '.join(shaky)}"
        if shaky
        else "the parts agree on the values"
    )
    print_line(words)


def _p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<1e-9" if p < 1e-9 else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
