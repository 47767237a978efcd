"""Heat maps: what is best where, in words and colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from autotune.report.figures import ABREAST, COLOURS, INK, drawing, plain

_HATCHES = ("////", "....", "xxxx")


def heat_map(
    title: str,
    x_name: str,
    y_name: str,
    columns: Sequence[str],
    rows: Sequence[str],
    kinds: Sequence[Sequence[str]],
    words: Sequence[Sequence[str]],
    neutral: str = "",
) -> str:
    """A cell per row and column, coloured by its kind, with its words in it.

    The kind ``neutral`` stays grey; where colours come again, they are hatched.
    """
    from matplotlib.patches import Patch, Rectangle

    order = [k for k in dict.fromkeys(kind for row in kinds for kind in row) if k != neutral]
    looks = {kind: _look(number) for number, kind in enumerate(order)}
    if any(neutral in row for row in kinds):
        looks[neutral] = {"facecolor": INK, "alpha": 0.08}
    below = math.ceil(len(looks) / ABREAST)
    with drawing(title, x_name, y_name, 1.2 + 0.36 * len(rows) + 0.22 * below) as made:
        axes = made.axes
        for y, (kind_row, word_row) in enumerate(zip(kinds, words, strict=True)):
            for x, (kind, word) in enumerate(zip(kind_row, word_row, strict=True)):
                axes.add_patch(Rectangle((x, y), 1, 1, linewidth=0, **looks[kind]))
                axes.text(x + 0.5, y + 0.5, plain(word), ha="center", va="center", fontsize=7)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], list(columns), fontsize=7)
        axes.set_yticks([y + 0.5 for y in range(len(rows))], list(rows))
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(rows), 0)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        handles = [Patch(label=plain(kind), linewidth=0, **look) for kind, look in looks.items()]
        axes.figure.legend(
            handles=handles, loc="outside lower left", ncols=ABREAST, handlelength=1.2
        )
    return made.svg


def _look(number: int) -> dict[str, Any]:
    """A colour, then the same colours hatched."""
    again = number // len(COLOURS)
    hatch = {"hatch": _HATCHES[(again - 1) % len(_HATCHES)], "edgecolor": INK} if again else {}
    return {"facecolor": COLOURS[number % len(COLOURS)], "alpha": 0.4, **hatch}
