"""Exploration plans: what ``autotune explore`` measures, as a TOML file (``configs/plans``).

:func:`load_plan` reads a plan. :func:`start_dataset` prepares the dataset's folder: cells resolved
and settings listed, nothing measured yet. :func:`of_block` orders the runs: passes over the
settings of a cell, divided into blocks of bounded time.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from autotune.config.app import App
from autotune.config.cluster import link_of
from autotune.config.find import find_config
from autotune.config.validated import read_toml
from autotune.datasets.card import (
    CARD,
    Card,
    CardModel,
    Cell,
    CellKey,
    Kind,
    Link,
    RecordedMachine,
    Split,
)
from autotune.datasets.dataset import ALL, Dataset, create_dataset, load
from autotune.datasets.recorded_space import narrow_space
from autotune.datasets.replay import BAD_RUNS
from autotune.errors import UsageError
from autotune.names import ConfigName, PlainName
from autotune.space import DEFAULT, Setting, Space, load_space
from autotune.targets.target import Target
from runner.files.paths import entries, exists, real_path
from runner.machine import describe_machine

if TYPE_CHECKING:
    import pandas as pd


PLANS = "plans"
BLOCK_S = 600.0
LARGEST_GRID = 256


class PlanCell(CardModel):
    """One cell to measure.

    ``space`` is a space as in ``--space``; ``levels`` reduces it to these parameters and levels.
    ``runs``: number of runs of each setting of a grid, instead of the plan's; with a large possible
    gain more runs are needed to separate the best setting from a lucky one. It may be raised later
    to continue the cell. ``args`` replace those of the application's input. ``run_s`` is the wall
    time of one run of the default in seconds, start and end included; the planned time is computed
    from it.
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

    def cell(
        self, facts: dict[str, int | float | str], link: tuple[float, float] | None = None
    ) -> Cell:
        """The cell as the card lists it, before it is measured; ``link``: seconds each way and bits
        per second between its nodes."""
        words = self.model_dump(exclude={"space", "levels", "run_s", "runs"})
        wire = None if link is None else Link(latency_s=link[0], rate_bps=link[1])
        return Cell(**words, facts=facts, wire=wire)


class ExplorationPlan(CardModel):
    """A campaign.

    grid: every setting of each cell's space is run ``runs`` times, once in each of as many passes.
    explore: one list of ``settings`` random settings for all cells is run once; then the best
    ``best`` and ``best`` random others of each cell are run ``more`` times again.

    A random setting keeps a share ``keep`` of its parameters. If twenty parameters change at once,
    one of them probably makes the run very slow, and nothing is learned about the others.
    ``default_every``: number of other runs between runs of the default. ``slowest``: a run is
    stopped at this multiple of the default's time.
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
            duplicates = sorted({key for key in keys if keys.count(key) > 1})
            raise ValueError(f"two cells have the key {', '.join(duplicates)}")
        if self.kind == "explore":
            words = {(cell.space, repr(cell.levels)) for cell in self.cells}
            if len(words) > 1:
                raise ValueError(
                    "the cells of an explore plan share one list of settings: give one space"
                )
        return self

    def passes(self, cell: PlanCell) -> int:
        """Number of passes over the settings of a cell."""
        return cell.runs or self.runs if self.kind == "grid" else 1 + self.more

    def select_cells(self, keys: list[str]) -> list[PlanCell]:
        """The cells with these keys, all if none is given; raises UsageError for unknown keys."""
        cells_by_key = {cell.key: cell for cell in self.cells}
        for key in keys:
            if key not in cells_by_key:
                raise UsageError(
                    f"the plan {self.name} has no cell {key!r}; its cells: "
                    f"{', '.join(cells_by_key)}",
                    code="dataset.cell_unknown",
                )
        return [cells_by_key[key] for key in cells_by_key if not keys or key in keys]


def load_plan(name: str) -> ExplorationPlan:
    """The plan with that name, or in that file; raises UsageError if it is missing or invalid."""
    file = find_config(PLANS, name)
    return read_toml(file.text, file.path, ExplorationPlan)


Resolve = Callable[[PlanCell], Target]
"""Looks up application, cluster and MPI of a cell."""


@dataclass(frozen=True)
class PreparedCell:
    """A cell that can be measured, with its settings and how they are cut into blocks."""

    plan: PlanCell
    target: Target
    space: Space
    settings: list[Setting]
    cut: Size
    runs: int
    """Number of planned launches."""

    @property
    def planned_s(self) -> float:
        return self.runs * self.plan.run_s


def with_args(app: App, input_name: str | None, args: Sequence[str] | None) -> App:
    """The application with these arguments of the input instead of its own."""
    if args is None:
        return app
    name = input_name or app.usual_input
    variant = app.input(input_name).model_copy(update={"args": tuple(args)})
    return app.model_copy(update={"inputs": {**app.inputs, name: variant}})


def prepare_dataset(
    plan: ExplorationPlan, cells: Sequence[PlanCell], resolve: Resolve
) -> list[PreparedCell]:
    """Look up the needs of the cells; raises UsageError or RunnerError if something is missing."""
    resolutions = []
    # One list serves all cells of an explore plan, so it does not depend on the selected cells.
    for cell in plan.cells if plan.kind == "explore" else cells:
        target = resolve(cell)
        space = load_space(
            cell.space,
            library=target.library,
            facts=target.facts,
            app_facts=target.app_facts,
        ).without(target.cluster.fixed)
        if cell.levels is not None:
            space = narrow_space(space, cell.levels, f"plan {plan.name}, cell {cell.key}")
        resolutions.append((cell, target, space))
    common_settings = _random_list(plan, [space for _, _, space in resolutions])
    preparations = []
    for cell, target, space in resolutions:
        if cell not in cells:
            continue
        settings = _grid(plan, cell, space) if plan.kind == "grid" else common_settings
        cut = size(plan, cell, len(settings) - 1)
        runs = planned_runs(plan, len(settings) - 1, cut)
        preparations.append(PreparedCell(cell, target, space, settings, cut, runs))
    return preparations


def _grid(plan: ExplorationPlan, cell: PlanCell, space: Space) -> list[Setting]:
    settings = list(itertools.islice(space.enumerate(), LARGEST_GRID + 1))
    if len(settings) > LARGEST_GRID:
        raise UsageError(
            f"plan {plan.name}, cell {cell.key}: the grid has more than {LARGEST_GRID} settings "
            f"({space.combinations():.3g} combinations); give fewer levels",
            code="plan.too_large",
        )
    return [DEFAULT, *(setting for setting in settings if setting != DEFAULT)]


def _random_list(plan: ExplorationPlan, spaces: list[Space]) -> list[Setting]:
    """The default and distinct random settings that are valid in every cell."""
    if plan.kind == "grid":
        return []
    rng = np.random.default_rng(plan.seed)
    settings = {DEFAULT: None}
    for _ in range(50 * plan.settings):
        if len(settings) > plan.settings:
            break
        setting = spaces[0].sample(rng)
        if plan.keep < 1:
            left_out = [name for name in setting if rng.random() >= plan.keep]
            setting = spaces[0].canonical(setting.without(*left_out))
        if all(space.is_valid(setting) for space in spaces):
            settings[setting] = None
    return list(settings)


def start_dataset(
    plan: ExplorationPlan,
    preparations: Sequence[PreparedCell],
    folder: Path,
    regenerate: str,
    mpi: str,
) -> Dataset:
    """The dataset's folder: created if new, else checked and extended by the new cells.

    The dataset has the name of the folder, so that one plan on two machines gives two names. Raises
    UsageError if the folder holds something that this plan does not continue.
    """
    machine = describe_machine()
    old_cells: Mapping[str, Cell] = {}
    before = None
    if exists(folder / CARD):
        before = load(folder)
        _check(before, plan, preparations, machine.fingerprint, mpi)
        old_cells = {cell.key: cell for cell in before.cells}
    elif entries(folder):
        raise UsageError(
            f"{folder} has other files and no {CARD}; give an empty folder with -o",
            code="dataset.folder_not_empty",
        )
    now = {p.plan.key: _cell(p) for p in preparations}
    chunks = {p.plan.key: p.cut.chunks for p in preparations}
    keys = [c.key for c in plan.cells if c.key in old_cells or c.key in now]
    new_cells = [p for p in preparations if p.plan.key not in old_cells]
    planned_s = sum(p.planned_s for p in new_cells)
    card = Card(
        schema=1,
        name=real_path(folder).name,
        plan=plan.name,
        kind=plan.kind,
        title=plan.title,
        why=plan.why,
        date=before.card.date if before else f"{datetime.date.today()}",
        machine=RecordedMachine.of(machine),
        mpi=mpi,
        protocol=protocol(plan, any(cell.unguarded for cell in old_cells.values())),
        planned_s=round(planned_s + (before.card.planned_s if before else 0.0), 1),
        measured_s=before.card.measured_s if before else 0.0,
        regenerate=regenerate,
        cells=tuple(
            extend_cell(old_cells.get(key), now.get(key), chunks.get(key, 1)) for key in keys
        ),
    )
    spaces = {p.plan.key: p.space for p in new_cells}
    settings = {p.plan.key: p.settings for p in new_cells}
    if plan.kind == "explore" and preparations:
        settings = {ALL: preparations[0].settings}
    return create_dataset(folder, card, spaces, settings)


def extend_cell(before: Cell | None, now: Cell | None, chunks: int) -> Cell:
    """A cell as in its first session, with more blocks if the plan now asks for more runs.

    Existing blocks stay unchanged: a further pass of ``chunks`` blocks only adds blocks at the end.
    """
    if before is None or now is None:
        cell = before or now
        assert cell is not None
        return cell
    more = now.blocks > before.blocks and before.blocks % chunks == 0
    return before.model_copy(update={"blocks": now.blocks}) if more else before


def _cell(preparation: PreparedCell) -> Cell:
    cell = preparation.plan.cell(dict(preparation.space.facts), link_of(preparation.target.cluster))
    return cell.model_copy(update={"blocks": preparation.cut.blocks})


def _check(
    before: Dataset,
    plan: ExplorationPlan,
    preparations: Sequence[PreparedCell],
    fingerprint: str,
    mpi: str,
) -> None:
    hint = "give another folder with -o"
    card = before.card
    if (card.plan or card.name, card.kind) != (plan.name, plan.kind):
        raise UsageError(
            f"{before.folder} is the {card.kind} dataset of {card.plan or card.name}, but "
            f"the plan is the {plan.kind} {plan.name}; {hint}",
            code="plan.other_dataset",
        )
    if card.machine.fingerprint != fingerprint or card.mpi != mpi:
        raise UsageError(
            f"{before.folder} was measured on machine {card.machine.fingerprint} with "
            f"{card.mpi}, but this is {fingerprint} with {mpi}; runs of two machines need "
            f"two datasets: {hint}",
            code="plan.other_dataset",
        )
    keys = {cell.key for cell in before.cells}
    for p in preparations:
        if p.plan.key in keys and before.settings(p.plan.key) != p.settings:
            raise UsageError(
                f"{before.folder}: cell {p.plan.key} was begun with other settings than the "
                f"plan now has; {hint}",
                code="plan.other_dataset",
            )


def _times(plan: ExplorationPlan) -> str:
    counts = sorted({plan.passes(cell) for cell in plan.cells})
    return " or ".join(map(str, counts))


def protocol(plan: ExplorationPlan, has_unguarded_blocks: bool = False) -> tuple[str, ...]:
    """The protocol of the runs, as sentences for the card.

    ``has_unguarded_blocks``: some blocks were measured without the guard.
    """
    how = (
        f"every setting of a grid {_times(plan)} times, once in each pass, in random order"
        if plan.kind == "grid"
        else f"{plan.settings} random settings once; then {plan.more} times more the best "
        f"{plan.best} and a random {plan.best} of the others of each cell"
    )
    return (
        how,
        "blocks of at most 10 minutes, each with its own runs of the default",
        f"the default at a block's beginning, end and after every {plan.default_every} others",
        f"a run slower than {plan.slowest:g} times its block's default is stopped: censored",
        "a setting that ended badly twice is not run again",
        "runs beside foreign load are repeated and not kept here"
        + (", but in blocks that were measured without the guard" if has_unguarded_blocks else ""),
    )


DEFAULTS_FIRST = 3
"""Runs of the default at the beginning of a block; more follow in the block and at its end."""


@dataclass(frozen=True)
class Size:
    """The division of the passes over a cell's settings into blocks. It is fixed before the first
    run, so that a continued campaign has the same blocks."""

    chunks: int
    passes: int

    @property
    def blocks(self) -> int:
        return self.chunks * self.passes


def size(plan: ExplorationPlan, cell: PlanCell, settings: int) -> Size:
    """The cut of ``settings`` settings (without the default) into blocks of at most ten minutes."""
    runs = settings * (1 + 1 / plan.default_every) + DEFAULTS_FIRST + 1
    # Slow settings take up to three times the default; the factor is a margin, not a bound.
    return Size(max(1, math.ceil(runs * cell.run_s * 1.25 / BLOCK_S)), plan.passes(cell))


def planned_runs(plan: ExplorationPlan, settings: int, cut: Size) -> int:
    """Number of launches of a cell, default runs included, if every setting runs well."""
    per_block = DEFAULTS_FIRST + 1
    runs = settings * cut.passes
    if plan.kind == "explore":
        runs = settings + plan.more * min(2 * plan.best, settings)
    return round(runs * (1 + 1 / plan.default_every)) + per_block * cut.blocks


def of_block(
    plan: ExplorationPlan,
    cell: str,
    cut: Size,
    block: int,
    indices: Sequence[int],
    runs: pd.DataFrame,
) -> list[int]:
    """Indices of the settings of one block in their order, without the default.

    ``indices`` are all settings of the cell, ``runs`` the runs of earlier blocks. A setting with
    two bad runs is not run again. In an exploration only the selected settings are run after the
    first pass.
    """
    number, chunk = divmod(block, cut.chunks)
    candidates = [index for index in indices if index != 0]
    if plan.kind == "explore" and number > 0:
        candidates = _choose_repeats(plan, cell, candidates, runs[runs["block"] < cut.chunks])
    order = sorted(candidates)
    random.Random(f"{plan.seed}/{cell}/{number}").shuffle(order)
    bad = runs[(runs["state"] != "ok") & (runs["block"] < block)].groupby("setting").size()
    bad_settings = {int(str(i)) for i, count in bad.items() if count >= BAD_RUNS}
    return [index for index in order[chunk :: cut.chunks] if index not in bad_settings]


def _choose_repeats(
    plan: ExplorationPlan, cell: str, indices: list[int], first: pd.DataFrame
) -> list[int]:
    """The best settings of the first pass and a random choice of the others."""
    good = first[first["setting"].isin(indices) & (first["state"] == "ok")]
    ranking = good.groupby("setting")["ratio"].median().sort_values(kind="stable").index
    best = [int(str(i)) for i in ranking[: plan.best]]
    others = sorted(set(indices) - set(best))
    count = min(plan.best, len(others))
    return best + random.Random(f"{plan.seed}/{cell}/others").sample(others, count)
