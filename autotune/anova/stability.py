"""Stability of the analysis: the same analysis on parts of the data.

Source: Pellegrini, Table 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from autotune.anova.factors import Factor, FactorOptions, judge_factors
from autotune.anova.oneway import Response, respond
from autotune.anova.table import CellFacts, RunTable
from autotune.document import Document
from autotune.errors import UsageError, WorkError
from autotune.json_types import ValuesByName

By = Literal["app", "input", "ranks", "cluster", "cell"]
WAYS: tuple[By, ...] = ("app", "input", "ranks", "cluster", "cell")


class SubsetRow(Document):
    """The levels that a part of the data chooses."""

    part: str
    cells: int
    rows: int
    chosen: ValuesByName


@dataclass(frozen=True)
class Subset:
    """The answer on one part: a column of the table. ``factors`` is empty without possible gain."""

    name: str
    cells: int
    rows: int
    factors: tuple[Factor, ...]

    def value(self, name: str) -> str:
        """The chosen level; "=" if the default level is certainly best; a dash otherwise."""
        for factor in self.factors:
            if factor.name == name:
                return shown_level(factor)
        return "–"

    @property
    def row(self) -> SubsetRow:
        """The part of a document."""
        values = {f.name: f.chosen for f in self.factors if f.chosen is not None}
        return SubsetRow(part=self.name, cells=self.cells, rows=self.rows, chosen=values)


def shown_level(factor: Factor) -> str:
    """As in the thesis, Table 4.3: a value or a dash; "=" if the factor matters and its default is
    best."""
    if factor.chosen is not None:
        return f"{factor.chosen}"
    return "=" if factor.significant and factor.why.startswith("matters") else "–"


def stability(table: RunTable, by: By, response: Response, options: FactorOptions) -> list[Subset]:
    """The same analysis on every part; raises UsageError where there is only one part."""
    names = sorted({_name(place, by) for place in table.cells.values()}, key=_order)
    if len(names) < 2:
        raise UsageError(
            f"{table.origin}: all cells have the same {by} ({names[0]}), so there are no "
            f"parts to compare; --by accepts {', '.join(WAYS)}",
            code="dataset.one_part",
        )
    return [_part(table, name, by, response, options) for name in names]


def _part(table: RunTable, name: str, by: By, response: Response, options: FactorOptions) -> Subset:
    part = table.where(lambda place: _name(place, by) == name)
    try:
        factors = tuple(judge_factors(respond(part, response), options))
    except WorkError:
        factors = ()
    return Subset(name, len(part.cells), len(part.rows), factors)


def _name(place: CellFacts, by: By) -> str:
    name = place.key if by == "cell" else getattr(place, by)
    return "-" if name is None else f"{name}"


def _order(name: str) -> tuple[bool, int, str]:
    return (not name.isdigit(), int(name) if name.isdigit() else 0, name)


def unstable(parts: Sequence[Subset], names: Sequence[str]) -> list[str]:
    """Parameters for which two parts choose different values."""
    unstable_names = []
    for name in names:
        values = {part.value(name) for part in parts} - {"–"}
        if len(values) > 1:
            unstable_names.append(name)
    return unstable_names
