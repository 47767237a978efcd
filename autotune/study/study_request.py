"""The request of a search study, with its names looked up: target, space, strategy, bounds.

The last part says whether a stored result answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.space.commutativity import commutative_levels
from autotune.space.library_choice import MPI
from autotune.store import StudyRecord
from autotune.store.keys import OPERATIONS, OTHERS
from autotune.strategies import Strategy, code_of
from autotune.study.budget import SearchPlan
from autotune.study.events import Watcher, silent
from autotune.study.launched_libraries import library_rows, switch_to
from autotune.study.other_library import OtherLibrary
from autotune.study.parts import LibraryLaunches, SwitchedLibrary
from autotune.study.result import BUDGET_GONE, BUDGET_SPENT, FINISHED, NOTHING_LEFT, Result
from autotune.study.run_history import RunHistory
from autotune.targets.target import Target
from runner.mpi.discover import adapter


@dataclass
class StudyRequest:
    """The request of a caller for one search study."""

    target: Target
    space: Space
    strategy: type[Strategy]
    options: dict[str, Any]
    seed: int
    plan: SearchPlan
    guard: bool = True
    remeasure: bool = False
    watch: Watcher = silent
    priors: tuple[Setting, ...] = ()
    """Settings that are tried first (the warm start)."""
    suggest: Callable[[], Sequence[Setting]] | None = None
    """Gives settings that are tried first as well.  It is asked once, when the study begins; so,
    other than ``priors``, they are not part of the study's key."""
    join: bool = False
    """Whether other workers take part in the study; one of them makes the proofs."""
    fidelity: bool = False
    """Whether cheap runs screen the settings."""
    others: tuple[OtherLibrary, ...] = ()
    """The further MPI libraries, which settings of ``space`` can name."""

    def __post_init__(self) -> None:
        """Raise UsageError for a space in which no parameter can vary here, and for a request of
        cheap runs of an input without a cheap form."""
        if self.fidelity:
            self.target.cheap()
        if len(self.space) == 0:
            absent = "".join(f"\n  {name}: {why}" for name, why in self.space.absent.items())
            raise UsageError(
                f"space {self.space.name} has no parameter that can vary with "
                f"{self.target.library.family} {self.target.library.version} on cluster "
                f"{self.target.cluster.name}; choose another (--space, autotune space "
                f"list){absent}",
                code="space.nothing_varies",
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the order of proposals, except the seed; part of the study's key."""
        first = {"priors": [prior.key for prior in self.priors]} if self.priors else {}
        own = code_of(self.strategy)
        code = {"code": own} if own else {}
        cheap = {"fidelity": self.target.cheap().input} if self.fidelity else {}
        added = [
            {"name": o.name} | o.identity(self.target, self.strategy.name, self.guard)
            for o in self.others
        ]
        several = {OTHERS: added} if added else {}
        # Answers of studies that did not look at the operations are not answers of these.
        seen = {OPERATIONS: "seen"} if commutative_levels(self.space) else {}
        return dict(self.options) | first | code | cheap | several | seen

    def launch_line(self, setting: Setting, params_file: str | None = None) -> str:
        """The launch of a setting under its library, as a user would type it."""
        other, target = self._other(setting), self.target_of(setting)
        space = self.space if other is None else other.space
        bare = setting.without(MPI)
        return target.mpirun_line(adapter(target.library), space, bare, params_file)

    def target_of(self, setting: Setting) -> Target:
        """The target under the library of a setting."""
        other = self._other(setting)
        return self.target if other is None else other.target

    def switch(self, setting: Setting, rows: Sequence[LibraryLaunches]) -> SwitchedLibrary | None:
        """What the library of a setting needs; None for that of the default."""
        other = self._other(setting)
        return None if other is None else switch_to(self.target, other, rows)

    def library_rows(self, history: RunHistory) -> list[LibraryLaunches]:
        """A row for each MPI library of the search; empty in a search under one."""
        if not self.others:
            return []
        targets = {DEFAULT.key: self.target} | {o.name: o.target for o in self.others}
        return library_rows(targets, history)

    def _other(self, setting: Setting) -> OtherLibrary | None:
        """The library that a setting names; None for that of the default."""
        return next((o for o in self.others if o.name == setting.get(MPI)), None)


def answer_of(study: StudyRecord, plan: SearchPlan) -> Result | None:
    """The stored result of a study, if it answers what ``plan`` requests; else None."""
    if study.result is None or study.status not in FINISHED:
        return None
    done = Result.from_json(study.result)
    more_trials = plan.trials is not None and plan.trials > done.trials
    more_time = plan.budget_s is not None and plan.budget_s > (done.budget_s or 0)
    more_runs = plan.max_runs is not None and plan.max_runs > (done.max_runs or 0)
    # With the same budget, more trials would find it spent again.
    bounded = plan.budget_s is not None or plan.max_runs is not None
    more_trials = more_trials and not (bounded and done.ended_by in (BUDGET_SPENT, BUDGET_GONE))
    if done.ended_by != NOTHING_LEFT and (more_trials or more_time or more_runs):
        return None
    return done
