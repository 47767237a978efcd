"""A self-contained HTML page of drawings: no scripts, nothing loaded, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from autotune.anova.factors import Factor
from autotune.anova.response import Response
from autotune.anova.svg import Mark, dots

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; max-width: 45rem; display: block; margin: 1.5rem 0; }
code { overflow-wrap: anywhere; }
"""
AXES: dict[Response, str] = {
    "gain": "mean gain over the default, as a share of the best known gain (95 % interval)",
    "log": "mean of log(T default / T), 95 % interval",
}


def page(title: str, words: Sequence[str], drawings: Iterable[str]) -> str:
    """The page as text; ``words`` are paragraphs, ``drawings`` SVG."""
    said = "\n".join(f"<p>{escape(line)}</p>" for line in words)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n{said}\n" + "\n".join(drawings) + "\n</body></html>\n"
    )


def level_means(factors: Sequence[Factor], response: Response) -> list[str]:
    """One drawing per significant factor (Pellegrini, Figure 4.9), the strongest first."""
    shown = sorted((f for f in factors if f.significant), key=lambda f: -f.omega2)
    return [_drawing(factor, response) for factor in shown]


def _drawing(factor: Factor, response: Response) -> str:
    marks = [
        Mark(m.level, m.mean, m.lo, m.hi, f"n = {m.n}", m.level == factor.best)
        for m in factor.levels
    ]
    return dots(factor.name, AXES[response], marks)
