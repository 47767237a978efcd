"""Measurements of collectives on this machine: one launch times one setting at many sizes."""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotune.collectives.tournament import Jobs
from autotune.config.app import load_app
from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting, Space
from autotune.store import Store
from autotune.study.budget import BudgetSpent
from autotune.study.events import Watcher, silent
from autotune.study.identity import study_key
from autotune.study.session import Session
from autotune.study.target import Target
from runner.types import RunRecord

MICRO = "micro"
_WORK_BYTES = 16 * 2**20
_CALLS = 400
"""Calls at one size: this many, fewer where they would move more than the bytes above."""


def program(operation: str, sizes: Sequence[int]) -> tuple[str, ...]:
    """Words of the micro-benchmark behind its module."""
    calls = max(min(_CALLS, _WORK_BYTES // max(sizes)), 40)
    return (operation, "--size", ",".join(map(str, sizes)), "--count", str(calls))


def target_for(target: Target, operation: str, sizes: Sequence[int]) -> Target:
    """``target`` with one operation at some sizes as its program."""
    base = load_app(MICRO)
    app = base.model_copy(
        update={
            "command": (*base.command, *program(operation, sizes)),
            "inputs": {},
            "default_input": "",
        }
    )
    return dataclasses.replace(target, app=app, input=None)


def by_size(record: RunRecord) -> dict[int, float]:
    """Microseconds per call at each size; empty for a run that does not count."""
    if not record.valid:
        return {}
    return {int(row["size"]): float(row["us"]) for row in record.extra["sizes"]}


@dataclass
class Allowance:
    """Machine seconds that one command may spend inside launches; None is no bound."""

    seconds: float | None = None
    spent_s: float = 0.0
    last_s: float = 0.0

    def claim(self) -> None:
        """Raises BudgetSpent where a launch as long as the last does not fit in."""
        if self.seconds is not None and self.spent_s + self.last_s > self.seconds:
            raise BudgetSpent("the budget is spent")

    def pay(self, wall_s: float) -> None:
        self.spent_s += wall_s
        self.last_s = wall_s


@dataclass
class Machine:
    """A place to measure one operation on ``target.ranks`` ranks; every run is stored."""

    store: Store
    target: Target
    space: Space
    operation: str
    seed: int = 0
    guard: bool = True
    watch: Watcher = silent
    launches: int = 0
    allowance: Allowance = field(default_factory=Allowance)
    asked: Counter[tuple[int, str]] = field(default_factory=Counter)
    """How often each setting of each study was wanted: what is stored is not measured again."""

    def measure(self, jobs: Jobs) -> dict[Setting, dict[int, float]]:
        """One round: the settings in random order, the default before, between and after.

        Raises WorkError where the default does not run.
        """
        settings = list(jobs)
        random.Random(f"{self.seed}:{self.operation}:{len(settings)}").shuffle(settings)
        everything = sorted({size for sizes in jobs.values() for size in sizes})
        found: dict[Setting, dict[int, float]] = {}
        before = self.run(DEFAULT, everything)
        for start in range(0, len(settings), 4):
            part = settings[start : start + 4]
            seen = {setting: self.run(setting, jobs[setting]) for setting in part}
            after = self.run(DEFAULT, everything)
            for setting, times in seen.items():
                found[setting] = {
                    size: us / statistics.fmean((before[size], after[size]))
                    for size, us in times.items()
                }
            before = after
        return found

    def run(self, setting: Setting, sizes: Sequence[int]) -> dict[int, float]:
        """One run that counts; microseconds at each size, empty where the setting fails.

        The n-th that is wanted of a setting is the n-th that is stored: a command that was
        interrupted goes on where it was.

        Raises WorkError where it is the default that fails, BudgetSpent where the allowance does
        not hold the run.
        """
        target = target_for(self.target, self.operation, sizes)
        options = {"sizes": list(sizes)}
        adapter = Session.adapter(target)
        how = ("collectives", options, self.seed, self.guard)
        key = study_key(target, self.space, adapter, *how)
        with Session(self.store, key, target, self.space, self.watch) as session:
            wanted = (session.study.id, setting.key)
            place = self.asked[wanted]
            self.asked[wanted] += 1
            ledger = session.bench.ledger.entries
            stored = [e for e in ledger if e.key == setting.key and e.record.valid]
            known = place < len(stored)
            if known:
                record = self._stored(session.study.id, setting, stored[place].order)
            else:
                self.allowance.claim()
                record = session.bench.run(setting, "search").record
                self.allowance.pay(record.wall_s)
            self.launches += 1
        times = by_size(record)
        if setting == DEFAULT and not times:
            raise WorkError(
                f"the micro-benchmark of {self.operation} does not run with the default: "
                f"{record.state}: {record.reason}"
            )
        return times

    def _stored(self, study: int, setting: Setting, order: int) -> RunRecord:
        """A stored run with the figures of each size, which the run history leaves out."""
        runs = self.store.runs(study, setting_key=setting.key, after=order - 1)
        return runs[0].record


def pairs(
    machine: Machine, candidate: Setting, sizes: Sequence[int], count: int
) -> Mapping[int, tuple[list[float], list[float]]]:
    """``count`` interleaved pairs in random order: per size, the default's and the candidate's
    microseconds, in the order of the pairs.  A failed candidate raises WorkError."""
    order = random.Random(f"{machine.seed}:{machine.operation}:pairs")
    found: dict[int, tuple[list[float], list[float]]] = {size: ([], []) for size in sizes}
    for _ in range(count):
        seen: dict[Setting, dict[int, float]] = {}
        for setting in order.sample([DEFAULT, candidate], 2):
            seen[setting] = machine.run(setting, sizes)
        if not seen[candidate]:
            raise WorkError(f"{machine.operation} does not run with the table that was found")
        for size in sizes:
            found[size][0].append(seen[DEFAULT][size])
            found[size][1].append(seen[candidate][size])
    return found
