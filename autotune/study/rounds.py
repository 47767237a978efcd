"""Rounds: the proofs of one study, each frozen before its first block.

What a round proves, at which looks and with how much of the study's error budget, is stored before
anything of it is measured, and never changes: a continued or extended study goes on with the rounds
it has and adds new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from autotune.errors import AutotuneError, WorkError
from autotune.space import Setting, Space
from autotune.space.trust import check_values
from autotune.stats import ErrorBudget, LookPlan
from autotune.study.run_history import CONFIRM, RunHistory

_PREFIX = "r"


class DocumentStore(Protocol):
    """Keeps JSON documents of a study by name; what was kept first stays."""

    def store_document(self, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Keep ``document`` where the name is new; the document that is kept."""
        ...

    def stored_document(self, name: str) -> dict[str, Any] | None:
        """The document of this name; None where there is none."""
        ...


@dataclass(frozen=True)
class Round:
    """One proof.  ``settings`` are its finalists, the best guess first.

    ``slim`` are those of which every parameter was seen to matter before the proof; ``whole`` is
    the setting that the first finalist was taken from, where that had more parameters.  ``trials``,
    ``budget_s`` and ``max_runs`` are what the study had when the round was frozen.
    """

    number: int
    settings: tuple[Setting, ...]
    plan: LookPlan
    slow_alpha: float
    """For the rates of slow launches, all finalists together."""
    limit_s: float | None
    slim: tuple[Setting, ...] = ()
    whole: Setting | None = None
    trials: int = 0
    budget_s: float | None = None
    max_runs: int | None = None

    @property
    def name(self) -> str:
        """As it stands in the names of phases."""
        return f"{_PREFIX}{self.number}"

    @property
    def phase(self) -> str:
        """Name of its blocks in the run history."""
        return f"{CONFIRM}:{self.name}"

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "settings": [setting.to_json() for setting in self.settings],
            "looks": list(self.plan.looks),
            "alpha": self.plan.alpha,
            "min_gain": self.plan.min_gain,
            "slow_alpha": self.slow_alpha,
            "limit_s": self.limit_s,
            "slim": [setting.to_json() for setting in self.slim],
            "whole": None if self.whole is None else self.whole.to_json(),
            "trials": self.trials,
            "budget_s": self.budget_s,
            "max_runs": self.max_runs,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], space: Space) -> Round:
        """Inverse of :meth:`to_json`.  WorkError for a document that is none, and for settings that
        ``space`` does not have: what is frozen comes from the database."""
        with readable_round():
            settings = tuple(load_round(values, space) for values in data["settings"])
            whole = data["whole"]
            return cls(
                number=int(data["number"]),
                settings=settings,
                plan=LookPlan(
                    looks=tuple(int(look) for look in data["looks"]),
                    alpha=float(data["alpha"]),
                    finalists=len(settings),
                    min_gain=float(data["min_gain"]),
                ),
                slow_alpha=float(data["slow_alpha"]),
                limit_s=None if data["limit_s"] is None else float(data["limit_s"]),
                slim=tuple(load_round(values, space) for values in data["slim"]),
                whole=None if whole is None else load_round(whole, space),
                trials=int(data["trials"]),
                budget_s=None if data["budget_s"] is None else float(data["budget_s"]),
                max_runs=None if data["max_runs"] is None else int(data["max_runs"]),
            )


@contextmanager
def readable_round() -> Iterator[None]:
    """Reading a frozen document: what is wrong with it becomes a WorkError in words."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, AutotuneError) as problem:
        raise WorkError(
            f"the plan that this study stored before its proof cannot be used: {problem}. "
            "Somebody else changed the results database: restore it, or search with "
            "another --seed"
        ) from None


def load_round(values: Mapping[str, object], space: Space) -> Setting:
    """A setting of a frozen document.

    Raises ValueError where ``space`` does not have it, UsageError where its values are not taken
    from a database.
    """
    setting = Setting(values)
    check_values(setting, "a stored plan", space)
    if wrong := space.violations(setting, grid=False):
        raise ValueError(f"{setting.key!r} is not a setting of its space: {'; '.join(wrong)}")
    return setting


class Rounds:
    """All rounds of a study, in order."""

    def __init__(
        self, documents: DocumentStore, history: RunHistory, space: Space, alpha: float
    ) -> None:
        self._documents = documents
        self._space = space
        # Proofs that were made before rounds were kept have spent their part too.
        self._first = 1 + len(_unkept(history))
        self._budget = ErrorBudget(alpha)

    def all(self) -> list[Round]:
        """The frozen rounds, oldest first."""
        found: list[Round] = []
        while (
            kept := self._documents.stored_document(_name(self._first + len(found)))
        ) is not None:
            found.append(Round.from_json(kept, self._space))
        return found

    def preregister(
        self,
        settings: Sequence[Setting],
        *,
        min_gain: float,
        limit_s: float | None,
        slim: Sequence[Setting] = (),
        whole: Setting | None = None,
        trials: int = 0,
        budget_s: float | None = None,
        max_runs: int | None = None,
    ) -> Round:
        """The next round, its share of the error budget with it."""
        number = self.next_number
        made = Round(
            number=number,
            settings=tuple(settings),
            plan=LookPlan(
                alpha=self._budget.proof(number), finalists=len(settings), min_gain=min_gain
            ),
            slow_alpha=self._budget.slow_launches(number),
            limit_s=limit_s,
            slim=tuple(slim),
            whole=whole,
            trials=trials,
            budget_s=budget_s,
            max_runs=max_runs,
        )
        return Round.from_json(
            self._documents.store_document(_name(number), made.to_json()), self._space
        )

    @property
    def next_number(self) -> int:
        """Number that the next round gets."""
        return self._first + len(self.all())

    @property
    def next_name(self) -> str:
        """Its name in phases."""
        return f"{_PREFIX}{self.next_number}"


def _name(number: int) -> str:
    return f"round:{number}"


def _unkept(history: RunHistory) -> set[str]:
    """Names of proofs that an earlier version made: their phases are named after trials."""
    names = {e.phase.split(":")[1] for e in history.entries if e.phase.startswith(f"{CONFIRM}:")}
    return {name for name in names if not name.startswith(_PREFIX)}
