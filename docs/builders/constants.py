"""Figures and tables of the pages that come from the code, written behind marks.

``up to 3<!-- = autotune.measurement.budget.SearchPlan.finalists -->`` gets the value of that
name. A mark stands right behind its figure; words for small numbers are figures. It may be an
expression, as ``100 * NAME``; ``NAME(ARGUMENT)`` is the default of a function's argument, and a
tuple is as many figures with commas between. A whole text stands between
``<!-- begin: EXPRESSION -->`` and
``<!-- end -->``. The values are committed, so that pages can be read without building the site.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
import re
from typing import Any

FRACTIONS = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}
COUNTS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
NUMBERS: dict[str, float] = FRACTIONS | {word: number for number, word in enumerate(COUNTS)}
WORDS = {number: word for word, number in NUMBERS.items()}
FIGURE = re.compile(rf"(?<![\w.])(?:\d+(?:,\d{{3}})*(?:\.\d+)?|{'|'.join(NUMBERS)})")
MARK = re.compile(r"<!-- = (.+?) -->", re.DOTALL)
MARKED = re.compile(rf"((?:{FIGURE.pattern},\s+)*{FIGURE.pattern}){MARK.pattern}", re.DOTALL)
BLOCK = re.compile(r"(<!-- begin: (.+?) -->\n).*?(?=<!-- end -->)", re.DOTALL)
NAME = re.compile(r"\b((?:autotune|runner)(?:\.\w+)+)(?:\(([a-z]\w*)\))?")


def value_of(expression: str) -> Any:
    """The value of a mark. Raises ImportError or AttributeError where a name is not there."""
    things: dict[str, Any] = {"math": math}

    def loaded(name: re.Match[str]) -> str:
        thing = pkgutil.resolve_name(name[1])
        if name[2]:
            thing = inspect.signature(thing).parameters[name[2]].default
        things[key := f"_{len(things)}"] = thing
        return key

    return eval(NAME.sub(loaded, expression), things)  # Pages are part of the sources.


def as_figure(figure: str, value: float) -> str:
    """A figure as it stands if it has this value, else the value in digits or as a word."""
    present = NUMBERS[figure] if figure in NUMBERS else float(figure.replace(",", ""))
    if math.isclose(present, value):
        return figure
    return WORDS.get(value, f"{value:.6g}") if figure in NUMBERS else f"{value:.6g}"


def inject(text: str) -> str:
    """A page with the values of today. Raises ValueError where a mark stands behind no figure."""
    if loose := MARK.findall(MARKED.sub("", text)):
        raise ValueError(f"no figure stands before {loose}")
    text = BLOCK.sub(lambda block: f"{block[1]}{value_of(block[2]).strip()}\n", text)
    return MARKED.sub(_figures, text)


def _figures(marked: re.Match[str]) -> str:
    value, text = value_of(marked[2]), marked[1]
    values = value if isinstance(value, tuple) else (value,)
    figures = list(FIGURE.finditer(text))[-len(values) :]
    for figure, one in reversed(list(zip(figures, values, strict=True))):
        text = text[: figure.start()] + as_figure(figure[0], one) + text[figure.end() :]
    return text + marked[0][len(marked[1]) :]
