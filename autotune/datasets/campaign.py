"""The campaign: measures a dataset block by block, each with its own default runs, one shard each.

The evaluator of studies makes the measurements. :class:`Campaign` decides the order and the shards.
The next session repeats an unfinished block, because its default runs would be of another hour.
(Its runs stay in the results database.)

:class:`CampaignBlock` runs one block in order, on an evaluator that waits while the machine is
busy.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.datasets.card import Card, Cell
from autotune.datasets.dataset import Dataset, load, representatives, write_card
from autotune.datasets.plan import (
    DEFAULTS_FIRST,
    ExplorationPlan,
    PreparedCell,
    Size,
    of_block,
    protocol,
)
from autotune.datasets.shards import RunRow, run_state, shard_path, write_shard
from autotune.errors import UsageError
from autotune.measurement.evaluator import Evaluator, MachineBusy, QuietMachine
from autotune.measurement.events import Event, PhaseStarted, Waiting
from autotune.measurement.figure_time import covered_s, outside_s
from autotune.measurement.idle_parameters import inactive_in
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.run_history import WARMUP, HistoryEntry
from autotune.measurement.study_executables import stored_executables
from autotune.measurement.study_key import study_key
from autotune.space import DEFAULT, InactiveParameters, Setting, Space
from autotune.store import Store
from autotune.targets.executables import PROGRAM
from autotune.targets.metric import default_failure
from runner.files.paths import exists


class Campaign:
    """Measures the cells of a dataset.

    ``run`` returns True when everything is measured, False when the budget is spent.  It raises
    WorkError if a default does not run or a shard cannot be written.
    """

    def __init__(
        self,
        plan: ExplorationPlan,
        cells: Sequence[PreparedCell],
        dataset: Dataset,
        store: Store,
        watch: Watch,
        guard: bool = True,
        budget_s: float | None = None,
    ) -> None:
        self.plan = plan
        self.cells = cells
        self.dataset = dataset
        self.store = store
        self.watch = watch
        self.guard = guard
        self.clock = TurnBudget(budget_s)

    def missing(self, cell: PreparedCell) -> list[int]:
        """Numbers of the cell's blocks without a shard."""
        folder, key = self.dataset.folder, cell.plan.key
        blocks = range(self.dataset.cell(key).blocks)
        return [b for b in blocks if not exists(shard_path(folder, key, b))]

    def left_s(self) -> float:
        """Expected seconds for the missing blocks, at the present pace."""
        blocks = [_per_block(cell) * len(self.missing(cell)) for cell in self.cells]
        return sum(blocks) * self.clock.pace

    def run(self) -> bool:
        for cell in self.cells:
            if not self.missing(cell):
                continue
            if not self.clock.allows(_per_block(cell)):
                return False
            try:
                self._cell(cell)
            except OutOfTime:
                return False
        return True

    def _cell(self, cell: PreparedCell) -> None:
        target, space = cell.target, cell.space
        options = {"plan": self.plan.name, "cell": cell.plan.key}
        seed = self.plan.seed
        key = study_key(target, space, EXPLORE, options, seed, self.guard)
        with MeasuredStudy(self.store, key, target, space, self.watch) as on:
            evaluator = PausingEvaluator(on.evaluator, on.evaluator.quiet, self.watch, self.clock)
            evaluator.run(DEFAULT, WARMUP, 0)
            self._require_program(cell, self._programs(on.study.id))
            for block in self.missing(cell):
                if not self.clock.allows(_per_block(cell)):
                    raise OutOfTime
                self._block(cell, block, evaluator, on.study.id)

    def _programs(self, study_id: int) -> set[str]:
        """Digests of the executables of a study's runs."""
        files = stored_executables(self.store, study_id)
        return {file.sha256 for file in files if file.kind == PROGRAM}

    def _has_shards(self, cell: PreparedCell) -> bool:
        """True if some of the cell's blocks are measured."""
        return len(self.missing(cell)) < self.dataset.cell(cell.plan.key).blocks

    def _require_program(self, preparation: PreparedCell, now: set[str]) -> None:
        """Raise UsageError if the cell's measured blocks are of another program."""
        key = preparation.plan.key
        before = set(self.dataset.cell(key).programs)
        if self._has_shards(preparation) and before and not now <= before:
            raise UsageError(
                f"the program of {key} has changed since its first blocks were measured, and runs "
                f"of two programs are not mixed in one dataset ({self.dataset.folder}).\nRestore "
                "the program, or measure the plan in a new folder (--out)",
                code="study.program_changed",
            )

    def _block(
        self, preparation: PreparedCell, number: int, evaluator: PausingEvaluator, study: int
    ) -> None:
        began, rejections = time.monotonic(), evaluator.evaluator.history.rejected
        has_programs = (
            not self._has_shards(preparation) or self.dataset.cell(preparation.plan.key).programs
        )
        key = preparation.plan.key
        cell = self.dataset.cell(key)
        self.watch(PhaseStarted(EXPLORE, f"{key}: block {number + 1} of {cell.blocks}"))
        block = CampaignBlock(
            self.plan, preparation.space, cell, number, self.dataset.settings(key), evaluator
        )
        indices = range(len(block.settings))
        # The division into blocks is that of the cell's first session, even if the plan has
        # changed.
        passes = self.plan.passes(preparation.plan)
        cut = Size(cell.blocks // passes, passes)
        block.run(of_block(self.plan, key, cut, number, indices, self.dataset.runs(key)))
        rows = self._rows(preparation, block)
        spent_s = time.monotonic() - began
        self.clock.count_block(_per_block(preparation), spent_s)
        write_shard(self.dataset.folder, rows)
        rejections = evaluator.evaluator.history.rejected - rejections
        programs = self._programs(study) if has_programs else set()
        self._update(cell, number, block.idle, rejections, spent_s, programs)
        bad = sum(row.state != "ok" for row in rows)
        self.watch(BlockEnd(key, number, cell.blocks, len(rows), bad, self.left_s()))

    def _rows(self, cell: PreparedCell, block: CampaignBlock) -> list[RunRow]:
        card, commit = self.dataset.card, commit_of()
        return [
            row_of(cell.plan.key, block.number, *run, card.machine.fingerprint, card.mpi, commit)
            for run in block.runs
        ]

    def _blocks_without_guard(self, cell: Cell, number: int) -> set[int]:
        """The cell's blocks without the guard, after this one was measured."""
        before = set(cell.unguarded)
        return before - {number} if self.guard else before | {number}

    def _update(
        self,
        cell: Cell,
        number: int,
        idle: InactiveParameters,
        rejections: int,
        spent_s: float,
        programs: set[str],
    ) -> None:
        """Write the block's results on the card: inactive parameters, rejected runs, blocks without
        the guard, the executables, and the time."""
        card = self.dataset.card
        update = cell.model_copy(
            update={
                "inactive_under": idle.under or None,
                "rejected": cell.rejected + rejections,
                "unguarded": tuple(sorted(self._blocks_without_guard(cell, number))),
                "programs": tuple(sorted({*cell.programs, *programs})),
            }
        )
        cells = tuple(update if c.key == cell.key else c for c in card.cells)
        fresh: Card = card.model_copy(
            update={
                "cells": cells,
                "measured_s": round(card.measured_s + spent_s, 1),
                "protocol": protocol(self.plan, any(c.unguarded for c in cells)),
            }
        )
        write_card(self.dataset.folder, fresh)
        self.dataset = load(self.dataset.folder)


def _per_block(cell: PreparedCell) -> float:
    return cell.planned_s / cell.cut.blocks


def commit_of() -> str:
    """The commit of this source tree; empty if it is not under version control."""
    try:
        process = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            cwd=Path(__file__).parent,
        )
    except OSError:
        return ""
    return process.stdout.strip()


EXPLORE = "explore"
PAUSE_S = 60.0
QUIET_S = 3.0
SLACK_S = 0.5
"""Wall seconds added to a time limit, because starting and ending sometimes take longer."""


@dataclass(frozen=True)
class BlockEnd:
    """An event: a shard was written. ``bad``: its runs that are not ok. ``left_s``: expected
    seconds for the missing blocks, at the present pace."""

    cell: str
    block: int
    blocks: int
    runs: int
    bad: int
    left_s: float


CampaignEvent = Event | BlockEnd
Watch = Callable[[CampaignEvent], None]


class OutOfTime(Exception):
    """The budget does not allow another block."""


@dataclass
class TurnBudget:
    """The budget of one session, and its pace: seconds measured per second planned."""

    budget_s: float | None
    began: float = field(default_factory=time.monotonic)
    planned_s: float = 0.0
    spent_s: float = 0.0

    def allows(self, planned_s: float) -> bool:
        elapsed_s = time.monotonic() - self.began
        return self.budget_s is None or elapsed_s + planned_s * self.pace <= self.budget_s

    @property
    def pace(self) -> float:
        return self.spent_s / self.planned_s if self.planned_s else 1.0

    def count_block(self, planned_s: float, spent_s: float) -> None:
        self.planned_s += planned_s
        self.spent_s += spent_s


@dataclass
class PausingEvaluator:
    """An evaluator that pauses while the machine is busy, until the budget is spent.

    ``run`` raises OutOfTime then.
    """

    evaluator: Evaluator
    quiet: QuietMachine
    watch: Watch
    clock: TurnBudget

    def run(
        self, setting: Setting, phase: str, block: int, timeout_s: float | None = None
    ) -> HistoryEntry:
        while True:
            try:
                return self.evaluator.run(setting, phase, block=block, timeout_s=timeout_s)
            except MachineBusy:
                self.watch(Waiting("paused: other programs keep the machine busy"))
            while not self.quiet(PAUSE_S, quiet_s=QUIET_S).quiet:
                if not self.clock.allows(0.0):
                    raise OutOfTime


@dataclass
class CampaignBlock:
    """One block under measurement; ``runs`` are (index, limit of the metric, entry)."""

    plan: ExplorationPlan
    space: Space
    cell: Cell
    number: int
    settings: list[Setting]
    evaluator: PausingEvaluator
    runs: list[tuple[int, float, HistoryEntry]] = field(default_factory=list)
    idle: InactiveParameters = field(init=False)

    def __post_init__(self) -> None:
        self.idle = self.cell.idle(self.space)

    def run(self, order: Sequence[int]) -> None:
        """Run the default, then the settings in this order with default runs between them, then the
        default.

        Raises WorkError if the default does not run.
        """
        firsts = representatives(self.settings, self.idle)
        for _ in range(DEFAULTS_FIRST):
            self._default()
        since = 0
        for index in order:
            if firsts[index] != index:
                continue
            if since >= self.plan.default_every:
                self._default()
                since = 0
            since += 1
            if self._setting(index):
                firsts = representatives(self.settings, self.idle)
        self._default()

    def _default(self) -> None:
        entry = self.evaluator.run(DEFAULT, EXPLORE, self.number)
        if not entry.record.valid:
            # A launcher sometimes fails to start; a broken program fails again.
            entry = self.evaluator.run(DEFAULT, EXPLORE, self.number)
        if not entry.record.valid:
            raise default_failure(
                f"cell {self.cell.key}: the default does not run: {entry.record.state}: "
                f"{entry.record.reason}",
                entry.record,
            )
        self.runs.append((0, math.nan, entry))

    def _setting(self, index: int) -> bool:
        """Run one setting; True if the run showed that another parameter is inactive."""
        records = [entry.record for number, _, entry in self.runs if number == 0]
        limit = self.plan.slowest * statistics.median(r.value_s for r in records)
        longest_s = self.plan.slowest * statistics.median(covered_s(r) for r in records)
        setting = self.idle.strip(self.settings[index])
        timeout_s = longest_s + 1.5 * outside_s(records) + SLACK_S
        entry = self.evaluator.run(setting, EXPLORE, self.number, timeout_s)
        self.runs.append((index, limit, entry))
        return bool(self.idle.learn(inactive_in(entry.record, setting), setting))


def row_of(
    cell: str,
    block: int,
    index: int,
    limit: float,
    entry: HistoryEntry,
    machine: str,
    mpi: str,
    commit: str,
) -> RunRow:
    """A run as a row of a shard."""
    record = entry.record
    return RunRow(
        cell=cell,
        block=block,
        order=entry.order,
        setting=index,
        state=run_state(record),
        reason=record.reason[:300],
        value_s=record.value_s if record.valid else math.nan,
        limit_s=limit,
        wall_s=record.wall_s,
        foreign_load=record.foreign_cpu_s,
        started_at=record.started_at,
        machine=machine,
        mpi=mpi,
        commit=commit,
    )
