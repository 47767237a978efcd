"""The second library of a comparison: one program under two MPI libraries, in one study.

The study is that of A's library. In the run history a setting of B also names B's library
(:func:`autotune.study.evaluator.under`), so both sides may have the same setting, and no other
study takes a run of B for one of A's library. Everything else is as in a comparison of settings:
blocks, looks, continuation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.space import Setting, Space
from autotune.study.budget import Budget
from autotune.study.evaluator import MPI, MachineEvaluator, under
from autotune.study.run_history import HistoryEntry
from autotune.study.session import Session
from autotune.study.study_key import study_key
from autotune.targets.target import Target
from runner.mpi.library import Library


@dataclass(frozen=True)
class SecondLibrary:
    """B's side of a comparison: the same program under another library, or its build for it.

    ``space`` has the parameters of B's setting.
    """

    target: Target
    space: Space

    @property
    def name(self) -> str:
        """The library as the run history names it."""
        return library_name(self.target.library.family, self.target.library.version)

    def under(self, setting: Setting) -> Setting:
        """``setting`` as the run history names it on this side."""
        return under(setting, self.name)

    def identity(self, first: Target, strategy: str, guard: bool) -> dict[str, Any]:
        """The part of the study's identity that is B's, in JSON types.

        The directories are part of it: two builds of one version are two libraries here.
        """
        target = self.target
        key = study_key(target, self.space, Session.adapter(target), strategy, {}, 0, guard)
        return {
            "second": key.hash,
            "libraries": [str(Path(t.library.bin).resolve()) for t in (first, target)],
        }


def library_name(family: str, version: str) -> str:
    """Family and version in one word: mpich-5.0.2."""
    return f"{family}-{version}"


def described(library: Library, program: str) -> dict[str, str]:
    """A side for the JSON document: the library's name, version and path, and the program."""
    return {
        "name": library.family,
        "version": library.version,
        "path": library.bin,
        "program": program,
    }


class LibrariesEvaluator:
    """Runs each setting under the library that it names; one run history and one budget for both.

    Implements :class:`autotune.study.evaluator.Evaluator`.
    """

    def __init__(self, first: MachineEvaluator, second: MachineEvaluator) -> None:
        self.first = first
        self.second = second
        self.history = first.history

    @property
    def budget(self) -> Budget | None:
        """The bound on the launches of both sides together."""
        return self.first.budget

    @budget.setter
    def budget(self, budget: Budget | None) -> None:
        self.first.budget = self.second.budget = budget

    def run(
        self,
        setting: Setting,
        phase: str,
        *,
        trial: int | None = None,
        block: int = 0,
        position: int = 0,
        timeout_s: float | None = None,
    ) -> HistoryEntry:
        """Make one run that counts, as :meth:`autotune.study.evaluator.Evaluator.run`."""
        side = self.second if MPI in setting else self.first
        return side.run(
            setting.without(MPI),
            phase,
            trial=trial,
            block=block,
            position=position,
            timeout_s=timeout_s,
        )


@contextmanager
def evaluator_of(session: Session, second: SecondLibrary) -> Iterator[LibrariesEvaluator]:
    """An evaluator of both sides while the session holds the machine."""
    with second.target.runner(session.study.key.guarded) as runner:
        other = dataclasses.replace(
            session.evaluator,
            runner=runner,
            target=second.target,
            space=second.space,
            library=second.name,
        )
        yield LibrariesEvaluator(session.evaluator, other)
