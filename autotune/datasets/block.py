"""One block: its runs, in order, on a bench that waits while the machine is busy."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from autotune.datasets.card import Cell
from autotune.datasets.dataset import representatives
from autotune.datasets.plan import Plan
from autotune.datasets.schedule import DEFAULTS_FIRST
from autotune.datasets.shards import Row, state_of
from autotune.errors import WorkError
from autotune.space import DEFAULT, IdleParameters, Setting, Space
from autotune.study.bench import Bench, MachineBusy, Quiet
from autotune.study.effect import inactive_in
from autotune.study.events import Event, Waiting
from autotune.study.ledger import Entry

EXPLORE = "explore"
PAUSE_S = 60.0
QUIET_S = 3.0
SLACK_S = 0.5
"""Wall seconds allowed beyond the limit: starting and ending take longer now and then."""


@dataclass(frozen=True)
class BlockEnded:
    """A shard was written.  ``left_s``: expected seconds for what is left, at the pace so far."""

    cell: str
    block: int
    blocks: int
    runs: int
    bad: int
    left_s: float


Told = Event | BlockEnded
Watch = Callable[[Told], None]


class OutOfTime(Exception):
    """The budget does not allow for another block."""


@dataclass
class Clock:
    """The budget of a turn, and the pace: seconds measured per second planned."""

    budget_s: float | None
    began: float = field(default_factory=time.monotonic)
    planned_s: float = 0.0
    spent_s: float = 0.0

    def allows(self, planned_s: float) -> bool:
        gone = time.monotonic() - self.began
        return self.budget_s is None or gone + planned_s * self.pace <= self.budget_s

    @property
    def pace(self) -> float:
        return self.spent_s / self.planned_s if self.planned_s else 1.0

    def done(self, planned_s: float, spent_s: float) -> None:
        self.planned_s += planned_s
        self.spent_s += spent_s


@dataclass
class Patient:
    """A bench that pauses while the machine is busy, for as long as the budget allows."""

    bench: Bench
    quiet: Quiet
    watch: Watch
    clock: Clock

    def run(
        self, setting: Setting, phase: str, block: int, timeout_s: float | None = None
    ) -> Entry:
        while True:
            try:
                return self.bench.run(setting, phase, block=block, timeout_s=timeout_s)
            except MachineBusy:
                self.watch(Waiting("paused: other programs keep the machine busy"))
            while not self.quiet(PAUSE_S, quiet_s=QUIET_S).quiet:
                if not self.clock.allows(0.0):
                    raise OutOfTime


@dataclass
class Block:
    """One block while it is measured; ``runs`` are (index, limit of the metric, entry)."""

    plan: Plan
    space: Space
    cell: Cell
    number: int
    settings: list[Setting]
    bench: Patient
    runs: list[tuple[int, float, Entry]] = field(default_factory=list)
    idle: IdleParameters = field(init=False)

    def __post_init__(self) -> None:
        self.idle = self.cell.idle(self.space)

    def run(self, order: Sequence[int]) -> None:
        """The default, the settings in this order with the default between them, the default."""
        known = representatives(self.settings, self.idle)
        for _ in range(DEFAULTS_FIRST):
            self._default()
        since = 0
        for index in order:
            if known[index] != index:
                continue
            if since >= self.plan.default_every:
                self._default()
                since = 0
            since += 1
            if self._setting(index):
                known = representatives(self.settings, self.idle)
        self._default()

    def _default(self) -> None:
        entry = self.bench.run(DEFAULT, EXPLORE, self.number)
        if not entry.record.valid:
            # Launchers fail to start now and then; a program that does not run fails again.
            entry = self.bench.run(DEFAULT, EXPLORE, self.number)
        if not entry.record.valid:
            raise WorkError(
                f"cell {self.cell.key}: the default does not run: {entry.record.state}: "
                f"{entry.record.reason}"
            )
        self.runs.append((0, math.nan, entry))

    def _setting(self, index: int) -> bool:
        """Run one setting; whether it taught that a parameter does nothing."""
        records = [entry.record for number, _, entry in self.runs if number == 0]
        limit = self.plan.slowest * statistics.median(r.value_s for r in records)
        outside = statistics.median(r.wall_s - r.value_s for r in records)
        setting = self.idle.strip(self.settings[index])
        timeout_s = limit + 1.5 * outside + SLACK_S
        entry = self.bench.run(setting, EXPLORE, self.number, timeout_s)
        self.runs.append((index, limit, entry))
        return bool(self.idle.learn(inactive_in(entry.record, setting), setting))


def row_of(
    cell: str,
    block: int,
    index: int,
    limit: float,
    entry: Entry,
    machine: str,
    mpi: str,
    commit: str,
) -> Row:
    """A run as a row of a shard."""
    record = entry.record
    return Row(
        cell=cell,
        block=block,
        order=entry.order,
        setting=index,
        state=state_of(record),
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
