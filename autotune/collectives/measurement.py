"""Measurements in rounds: one launch times one setting at many points, as message sizes.

The sizes of a launch are a parameter of its setting, so that all launches of a search belong to one
study.  The default is timed at all sizes.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from autotune.comparison.paired_comparison import hang_limit
from autotune.config.app import load_app
from autotune.errors import WorkError
from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall, SearchPlan
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.idle_parameters import inactive_in, inactive_words
from autotune.measurement.run_history import DEFAULT_PHASE, SEARCH, Figure, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.targets.target import Target
from runner.types import RunRecord

MICRO = "micro"
SIZES = "size"
"""The parameter with the sizes that a launch times; an option of the micro-benchmark."""
PLAN = SearchPlan(trials=None, default_every=4)
_WORK_BYTES = 16 * 2**20
_CALLS = 400
"""Calls at one size: this many, or fewer if they would move more than ``_WORK_BYTES``."""
Point = TypeVar("Point", bound=Hashable)


def micro_program(operation: str, sizes: Sequence[int]) -> tuple[str, ...]:
    """Arguments of the micro-benchmark, after the name of its module.  ``sizes`` in bytes."""
    calls = max(min(_CALLS, _WORK_BYTES // max(sizes)), 40)
    return (operation, "--size", _size_list(sizes), "--count", str(calls))


def target_for(target: Target, operation: str, sizes: Sequence[int]) -> Target:
    """``target`` with the micro-benchmark of one operation at these sizes as its program."""
    base = load_app(MICRO)
    app = base.model_copy(
        update={
            "command": (*base.command, *micro_program(operation, sizes)),
            "inputs": {},
            "default_input": "",
        }
    )
    return dataclasses.replace(target, app=app, input=None)


def search_space(space: Space, sizes: Sequence[int]) -> Space:
    """``space`` with the sizes of a launch as a further parameter; unset means all of them."""
    parameter = Parameter(SIZES, (_size_list(sizes),), "arg")
    return dataclasses.replace(space, parameters=(*space.parameters, parameter))


def at_size(size: int) -> Figure:
    """The metric of one size: microseconds per call of a valid run."""
    return lambda record: by_size(record)[size]


def by_size(record: RunRecord) -> dict[int, float]:
    """Microseconds per call at each size; empty for a run that is not valid."""
    if not record.valid:
        return {}
    return {int(row["size"]): float(row["us"]) for row in record.extra["sizes"]}


def _size_list(sizes: Sequence[int]) -> str:
    return ",".join(map(str, sizes))


@dataclass
class RoundMeasurement(ABC, Generic[Point]):
    """Rounds of launches on an evaluator; each launch times one setting at some points.

    The default is timed at all points. Runs in the run history are not repeated, so an interrupted
    command continues.
    """

    plan: ClassVar[SearchPlan] = PLAN

    evaluator: Evaluator
    budget: Budget
    operation: str
    seed: int = 0
    rounds: int = 0
    bench: Bench = field(init=False)
    round_history: RunHistory = field(init=False, default_factory=RunHistory)
    """The run history as it was at the end of the last round."""

    def __post_init__(self) -> None:
        self.evaluator.budget = self.budget
        self.bench = Bench(self.evaluator, self.plan, self.budget)

    @abstractmethod
    def launch_setting(self, setting: Setting, points: Sequence[Point]) -> Setting:
        """The setting with the points that its launch times."""

    @abstractmethod
    def figures(self, record: RunRecord) -> Mapping[Point, float]:
        """Microseconds per call at each point; empty for a run that is not valid."""

    def measure(self, jobs: Mapping[Setting, Sequence[Point]]) -> dict[Setting, dict[Point, float]]:
        """Measure one round: the settings in random order, with default runs before, between and
        after.

        Returns T / T_default at each point; a failing setting has no points. Raises WorkError if
        the default does not run, BudgetSpent if the budget does not allow the round.
        """
        phase = f"{SEARCH}:{self.rounds}"
        closing = f"{DEFAULT_PHASE}:{self.rounds}"
        self.rounds += 1
        settings = list(jobs)
        random.Random(f"{self.seed}:{self.operation}:{phase}").shuffle(settings)
        runs = {setting: self._run(phase, setting, jobs[setting]) for setting in settings}
        if not self.evaluator.history.blocks(closing):
            self._prepare()
            self.bench.run_default(closing)
        # Later runs must not change the ratios of this round.
        last = self.evaluator.history.blocks(closing)[0][DEFAULT.key].order
        self.round_history = RunHistory.of(
            (e for e in self.evaluator.history.entries if e.order <= last),
            self.evaluator.history.place,
        )
        return {s: self._ratios(self.round_history, run, jobs[s]) for s, run in runs.items()}

    @property
    def limit_s(self) -> float:
        """Wall seconds after which a launch counts as hanging."""
        walls = [record.wall_s for record in self.evaluator.history.default_records()]
        return hang_limit(statistics.median(walls), self.budget)

    def _run(self, phase: str, setting: Setting, points: Sequence[Point]) -> HistoryEntry:
        launch = self.launch_setting(setting, points)
        previous = self.evaluator.history.blocks(phase).get(0, {}).get(launch.key)
        if previous is not None:
            return previous
        self._prepare()
        self.bench.run_default_if_due()
        return self.evaluator.run(launch, phase, timeout_s=self.limit_s)

    def _prepare(self) -> None:
        """Check before a launch: the default has run in this process, and the budget allows one
        more run.

        Raises BudgetSpent.
        """
        try:
            self.bench.ensure_defaults()
        except BudgetTooSmall as problem:
            raise BudgetSpent(str(problem), code=problem.code) from None
        if not self.budget.affords(1):
            raise BudgetSpent("the budget is spent", code="budget.spent")

    def _ratios(
        self, history: RunHistory, entry: HistoryEntry, points: Sequence[Point]
    ) -> dict[Point, float]:
        if not entry.record.valid:
            return {}
        ratios = {point: history.ratio(entry, self._at(point)) for point in points}
        return {point: ratio for point, ratio in ratios.items() if ratio is not None}

    def _at(self, point: Point) -> Figure:
        return lambda record: self.figures(record)[point]


class SizeMeasurement(RoundMeasurement[int]):
    """The rounds of a tournament of one operation; a point is a message size in bytes."""

    def launch_setting(self, setting: Setting, points: Sequence[int]) -> Setting:
        return setting.with_values({SIZES: _size_list(points)})

    def figures(self, record: RunRecord) -> Mapping[int, float]:
        return by_size(record)

    def _run(self, phase: str, setting: Setting, points: Sequence[int]) -> HistoryEntry:
        entry = super()._run(phase, setting, points)
        idle = sorted(inactive_in(entry.record, setting))
        if idle:
            # Otherwise each algorithm would be measured as the default, and the table would be
            # noise.
            reason = inactive_words(idle[0], entry.record.read_back[idle[0]])
            raise WorkError(
                f"no algorithm of {self.operation} can be compared: {reason}; take that out of "
                "force, and give the command again",
                code="collectives.inactive",
            )
        return entry
