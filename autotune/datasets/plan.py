"""Plans: what ``autotune explore`` measures, as a TOML file (``configs/plans``)."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from autotune.config.find import find
from autotune.config.validated import read_toml
from autotune.datasets.card import Cell, CellKey, Kind, Model, Split
from autotune.errors import UsageError
from autotune.names import ConfigName, PlainName

PLANS = "plans"
BLOCK_S = 600.0
LARGEST_GRID = 256


class PlanCell(Model):
    """One cell to measure.

    ``space`` is a space as for ``--space``; ``levels`` narrows it to these parameters and levels.
    ``runs``: of each setting of a grid, instead of the plan's: where there is much to gain, more
    runs tell the best from the lucky.  It may be raised later; the cell is then continued.
    ``args`` replace those of the application's input.  ``run_s`` is what one run of the default
    was seen to take in wall seconds, start and end included: the planned time comes from it.
    """

    key: CellKey
    app: ConfigName
    input: str = ""
    args: tuple[str, ...] | None = None
    ranks: int = Field(ge=1)
    cluster: ConfigName = "local"
    split: Split = "design"
    note: str = ""
    space: ConfigName
    levels: dict[str, Any] | None = None
    runs: int | None = Field(default=None, ge=1)
    run_s: float = Field(default=1.0, gt=0)

    @field_validator("levels")
    @classmethod
    def _not_empty(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None and not value:
            raise ValueError("an empty table; name the parameters to vary, or leave it out")
        return value

    def cell(self, facts: dict[str, int | float | str]) -> Cell:
        """The cell as the card lists it, before it is measured."""
        words = self.model_dump(exclude={"space", "levels", "run_s", "runs"})
        return Cell(**words, facts=facts)


class Plan(Model):
    """A campaign.

    grid: every setting of each cell's space is run ``runs`` times, once in each of as many passes.
    explore: one list of ``settings`` random ones for all cells is run once, then ``more`` times
    again the best ``best`` and a random ``best`` of the others in each cell.
    Of the parameters of a random setting a share ``keep`` stays: of twenty that change at once one
    is likely to be a cliff, and nothing is learned of the others.
    ``default_every``: a run of the default after so many others.  ``slowest``: a run that takes so
    many times the default is stopped.
    """

    kind: Kind
    name: PlainName
    title: str = ""
    why: str = ""
    runs: int = Field(default=3, ge=1)
    settings: int = Field(default=120, ge=1)
    keep: float = Field(default=1.0, gt=0, le=1)
    best: int = Field(default=20, ge=0)
    more: int = Field(default=3, ge=0)
    seed: int = 0
    default_every: int = Field(default=8, ge=1)
    slowest: float = Field(default=3.0, gt=1)
    cells: tuple[PlanCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _cells_fit(self) -> Self:
        keys = [cell.key for cell in self.cells]
        if len(set(keys)) < len(keys):
            twice = sorted({key for key in keys if keys.count(key) > 1})
            raise ValueError(f"two cells have the key {', '.join(twice)}")
        if self.kind == "explore":
            words = {(cell.space, repr(cell.levels)) for cell in self.cells}
            if len(words) > 1:
                raise ValueError(
                    "the cells of an explore plan share one list of settings: give one space"
                )
        return self

    def passes(self, cell: PlanCell) -> int:
        """How often the machine goes through a cell."""
        return cell.runs or self.runs if self.kind == "grid" else 1 + self.more

    def chosen(self, keys: list[str]) -> list[PlanCell]:
        """The cells of these keys, all where none is given; raises UsageError for unknown ones."""
        known = {cell.key: cell for cell in self.cells}
        for key in keys:
            if key not in known:
                raise UsageError(
                    f"the plan {self.name} has no cell {key!r}; its cells: {', '.join(known)}"
                )
        return [known[key] for key in known if not keys or key in keys]


def load_plan(name: str) -> Plan:
    """The plan of that name, or the file of that path; raises UsageError."""
    file = find(PLANS, name)
    return read_toml(file.text, file.path, Plan)
