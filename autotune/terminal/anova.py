"""Terminal output of an analysis of variance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_table
from autotune.wording import percent

if TYPE_CHECKING:
    from autotune.anova.factors import Factor
    from autotune.anova.stability import Subset
    from autotune.api.anova import Analysis


SIGN = 0.5
"""Parameters with a larger corrected p are only named in the list of those without an effect."""


SHOWN_PAIRS = 5


def print_analysis(analysis: Analysis) -> None:
    """Print the factors, their best values and their interactions."""
    from autotune.anova.stability import shown_level

    factors, pairs, joint_model = analysis.factors, analysis.interactions, analysis.joint_model
    for line in analysis.headline:
        print_line(line, bold=line.startswith("setting"))
    factors_by_p = sorted(factors, key=lambda f: (f.p_corrected, -f.omega2))
    rows = [
        [
            factor.name,
            shown_level(factor),
            _p(factor.p_corrected),
            percent(factor.omega2).lstrip("+"),
            factor.why if factor.significant else "",
        ]
        for factor in factors_by_p
        if factor.significant or factor.p_corrected < SIGN
    ]
    title = "value to set (–: no certain effect; =: the default is the best level)"
    if rows:
        print_table(title, ["parameter", "value", ">p", ">explains", ""], rows)
    names_by_reason: dict[str, list[str]] = {}
    for factor in factors_by_p[len(rows) :]:
        is_tested = sum(level.has_mean for level in factor.levels) > 1
        words = (
            f"no sign of an effect (p of {SIGN:g} or more)"
            if is_tested
            else "not tested (too few observations)"
        )
        names_by_reason.setdefault(words, []).append(factor.name)
    for words, names in names_by_reason.items():
        print_line(f"{words}: {', '.join(names)}")
    strong = [pair for pair in pairs if pair.significant][:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.best[0]}, {p.best[1]}", _p(p.p_corrected)]
            for p in strong
        ]
        print_table("interactions", ["pair", "best together", ">p"], rows)
    if joint_model is not None:
        rows = [
            [name, f"{effect:+.4f}", f"{joint_model.errors[name]:.4f}"]
            for name, effect in joint_model.effects.items()
        ]
        title = "joint mixed model: effect of each level against the first level of its parameter"
        print_table(title, ["level", ">effect", ">std. error"], rows)


def print_parts(parts: list[Subset], factors: list[Factor]) -> None:
    """Print the same analysis on parts of the data, if there are any."""
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
