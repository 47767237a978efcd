"""The campaign: block after block, each with default runs of its own, each one shard.

Measuring is the study's own bench; here is only what is run when, and what becomes a shard.  A
block that is not finished is measured anew by the next turn: its default runs would be of another
hour.  (Its runs stay in the results database.)
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from autotune.datasets.block import (
    EXPLORE,
    Block,
    BlockEnded,
    Clock,
    OutOfTime,
    Patient,
    Watch,
    row_of,
)
from autotune.datasets.card import Card, Cell
from autotune.datasets.dataset import Dataset, load
from autotune.datasets.plan import Plan
from autotune.datasets.prepare import Prepared, protocol
from autotune.datasets.schedule import Size, of_block
from autotune.datasets.shards import Row, shard_path, write_shard
from autotune.datasets.writer import write_card
from autotune.space import DEFAULT, IdleParameters
from autotune.store import Store
from autotune.study.events import PhaseStarted
from autotune.study.identity import study_key
from autotune.study.ledger import WARMUP
from autotune.study.session import Session


class Campaign:
    """Measures the cells of a dataset.  ``run`` returns whether all of it is measured."""

    def __init__(
        self,
        plan: Plan,
        prepared: Sequence[Prepared],
        dataset: Dataset,
        store: Store,
        watch: Watch,
        guard: bool = True,
        budget_s: float | None = None,
    ) -> None:
        self.plan = plan
        self.prepared = prepared
        self.dataset = dataset
        self.store = store
        self.watch = watch
        self.guard = guard
        self.clock = Clock(budget_s)

    def missing(self, prepared: Prepared) -> list[int]:
        """Blocks of a cell without a shard."""
        folder, key = self.dataset.folder, prepared.plan.key
        blocks = range(self.dataset.cell(key).blocks)
        return [b for b in blocks if not shard_path(folder, key, b).exists()]

    def left_s(self) -> float:
        """Seconds that the missing blocks will take, at the pace so far."""
        blocks = [_per_block(p) * len(self.missing(p)) for p in self.prepared]
        return sum(blocks) * self.clock.pace

    def run(self) -> bool:
        for prepared in self.prepared:
            if not self.missing(prepared):
                continue
            if not self.clock.allows(_per_block(prepared)):
                return False
            try:
                self._cell(prepared)
            except OutOfTime:
                return False
        return True

    def _cell(self, prepared: Prepared) -> None:
        target, space = prepared.target, prepared.space
        options = {"plan": self.plan.name, "cell": prepared.plan.key}
        seed = self.plan.seed
        key = study_key(target, space, Session.adapter(target), EXPLORE, options, seed, self.guard)
        with Session(self.store, key, target, space, self.watch) as on:
            bench = Patient(on.bench, on.bench.quiet, self.watch, self.clock)
            bench.run(DEFAULT, WARMUP, 0)
            for block in self.missing(prepared):
                if not self.clock.allows(_per_block(prepared)):
                    raise OutOfTime
                self._block(prepared, block, bench)

    def _block(self, prepared: Prepared, number: int, bench: Patient) -> None:
        began, rejected = time.monotonic(), bench.bench.ledger.rejected
        key = prepared.plan.key
        cell = self.dataset.cell(key)
        self.watch(PhaseStarted(EXPLORE, f"{key}: block {number + 1} of {cell.blocks}"))
        block = Block(self.plan, prepared.space, cell, number, self.dataset.settings(key), bench)
        indices = range(len(block.settings))
        # As it was cut when the cell was begun, whatever the plan's estimate is now.
        passes = self.plan.passes(prepared.plan)
        cut = Size(cell.blocks // passes, passes)
        block.run(of_block(self.plan, key, cut, number, indices, self.dataset.runs(key)))
        rows = self._rows(prepared, block)
        spent = time.monotonic() - began
        self.clock.done(_per_block(prepared), spent)
        write_shard(self.dataset.folder, rows)
        rejected = bench.bench.ledger.rejected - rejected
        self._update(cell, number, block.idle, rejected, spent)
        bad = sum(row.state != "ok" for row in rows)
        self.watch(BlockEnded(key, number, cell.blocks, len(rows), bad, self.left_s()))

    def _rows(self, prepared: Prepared, block: Block) -> list[Row]:
        card, commit = self.dataset.card, commit_of()
        return [
            row_of(
                prepared.plan.key, block.number, *run, card.machine.fingerprint, card.mpi, commit
            )
            for run in block.runs
        ]

    def _unguarded(self, cell: Cell, number: int) -> set[int]:
        """The cell's blocks without the guard, after this one was measured."""
        before = set(cell.unguarded)
        return before - {number} if self.guard else before | {number}

    def _update(
        self, cell: Cell, number: int, idle: IdleParameters, rejected: int, spent: float
    ) -> None:
        """What the block taught goes on the card."""
        card = self.dataset.card
        changed = cell.model_copy(
            update={
                "inactive_under": idle.under or None,
                "rejected": cell.rejected + rejected,
                "unguarded": tuple(sorted(self._unguarded(cell, number))),
            }
        )
        cells = tuple(changed if c.key == cell.key else c for c in card.cells)
        fresh: Card = card.model_copy(
            update={
                "cells": cells,
                "measured_s": round(card.measured_s + spent, 1),
                "protocol": protocol(self.plan, any(c.unguarded for c in cells)),
            }
        )
        write_card(self.dataset.folder, fresh)
        self.dataset = load(self.dataset.folder)


def _per_block(prepared: Prepared) -> float:
    return prepared.planned_s / prepared.cut.blocks


def commit_of() -> str:
    """The commit of this source tree; empty where it is none."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parent,
        )
    except OSError:
        return ""
    return done.stdout.strip()
