"""Rounds: the proofs of one study, each with a plan that is stored before its first block.

The plan says what a round proves, at which looks, and with how much of the study's error budget. It
never changes. A continued or extended study continues its rounds and adds new ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from autotune.errors import AutotuneError, WorkError
from autotune.measurement.run_history import CONFIRM
from autotune.space import Setting, Space
from autotune.space.outside_names import check_values
from autotune.stats import LOOKS, ErrorBudget, LookPlan
from autotune.study.trial_store import DocumentStore

_PREFIX = "r"
LOOKS_OF_TWO = (9, 13, 19, 28, 40)
"""Looks of two finalists: nine blocks are the fewest whose interval the shared alpha allows."""
FUTILITY = 0.2
"""Chance of a win below which a finalist is stopped; it can only lose wins."""


def look_plan(finalists: int, alpha: float, min_gain: float) -> LookPlan:
    """The looks of a proof; a win is declared from the first look that has an interval."""
    looks = LOOKS_OF_TWO if finalists == 2 else LOOKS
    plan = LookPlan(
        looks=looks, alpha=alpha, finalists=finalists, min_gain=min_gain, futility=FUTILITY
    )
    return replace(plan, win_from=plan.first_interval)


@dataclass(frozen=True)
class Round:
    """One proof; ``settings`` are its finalists, the most promising first.

    ``slim`` are the finalists of which every parameter was seen to matter before the proof.
    ``whole`` is the setting from which the first finalist was taken, if that had more parameters.
    ``trials``, ``budget_s`` and ``max_runs`` are the bounds of the study when the round was stored.
    """

    number: int
    settings: tuple[Setting, ...]
    plan: LookPlan
    slow_alpha: float
    """Alpha for the rates of slow launches, all finalists together."""
    limit_s: float | None
    slim: tuple[Setting, ...] = ()
    whole: Setting | None = None
    trials: int = 0
    budget_s: float | None = None
    max_runs: int | None = None

    @property
    def name(self) -> str:
        """The name of the round in the names of phases."""
        return f"{_PREFIX}{self.number}"

    @property
    def phase(self) -> str:
        """Name of the round's blocks in the run history."""
        return f"{CONFIRM}:{self.name}"

    def later_phase(self, name: str, setting: Setting) -> str:
        """Name of blocks after the proof of a setting."""
        return f"{self.phase}:{name}:{digest(setting)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "settings": [setting.to_json() for setting in self.settings],
            "looks": list(self.plan.looks),
            "alpha": self.plan.alpha,
            "min_gain": self.plan.min_gain,
            "win_from": self.plan.win_from,
            "futility": self.plan.futility,
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
        """Inverse of :meth:`to_json`.

        Raises WorkError for a document that is no round, and for settings that ``space`` does not
        have, because the document comes from the database.
        """
        with readable_round():
            settings = tuple(stored_setting(values, space) for values in data["settings"])
            whole = data["whole"]
            return cls(
                number=int(data["number"]),
                settings=settings,
                plan=LookPlan(
                    looks=tuple(int(look) for look in data["looks"]),
                    alpha=float(data["alpha"]),
                    finalists=len(settings),
                    min_gain=float(data["min_gain"]),
                    win_from=int(data["win_from"]),
                    futility=float(data["futility"]),
                ),
                slow_alpha=float(data["slow_alpha"]),
                limit_s=None if data["limit_s"] is None else float(data["limit_s"]),
                slim=tuple(stored_setting(values, space) for values in data["slim"]),
                whole=None if whole is None else stored_setting(whole, space),
                trials=int(data["trials"]),
                budget_s=None if data["budget_s"] is None else float(data["budget_s"]),
                max_runs=None if data["max_runs"] is None else int(data["max_runs"]),
            )


def digest(setting: Setting) -> str:
    """A short name of a setting for phases and documents."""
    return hashlib.sha256(setting.key.encode()).hexdigest()[:8]


@contextmanager
def readable_round() -> Iterator[None]:
    """A context for reading a stored document; it turns any mistake into a WorkError in words."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, AutotuneError) as problem:
        raise WorkError(
            f"the plan that this study stored before its proof cannot be used: {problem}. "
            "Somebody else changed the results database: restore it, or search with "
            "another --seed",
            code="study.damaged",
        ) from None


def stored_setting(values: Mapping[str, object], space: Space) -> Setting:
    """A setting of a stored document.

    Raises ValueError if ``space`` does not have it, UsageError if its values are not accepted from
    a database.
    """
    setting = Setting(values)
    check_values(setting, "a stored plan", space)
    if wrong := space.violations(setting, grid=False):
        raise ValueError(f"{setting.key!r} is not a setting of its space: {'; '.join(wrong)}")
    return setting


class Rounds:
    """All rounds of a study, in order."""

    def __init__(self, documents: DocumentStore, space: Space, alpha: float) -> None:
        self._documents = documents
        self._space = space
        self._budget = ErrorBudget(alpha)

    def all(self) -> list[Round]:
        """The stored rounds, oldest first."""
        rounds: list[Round] = []
        while (document := self._documents.stored_document(_name(1 + len(rounds)))) is not None:
            rounds.append(Round.from_json(document, self._space))
        return rounds

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
        """Store and return the next round, with its share of the error budget."""
        number = self.next_number
        proof_round = Round(
            number=number,
            settings=tuple(settings),
            plan=look_plan(len(settings), self._budget.proof(number), min_gain),
            slow_alpha=self._budget.slow_launches(number),
            limit_s=limit_s,
            slim=tuple(slim),
            whole=whole,
            trials=trials,
            budget_s=budget_s,
            max_runs=max_runs,
        )
        return Round.from_json(
            self._documents.store_document(_name(number), proof_round.to_json()), self._space
        )

    @property
    def next_number(self) -> int:
        """Number of the next round."""
        return 1 + len(self.all())

    @property
    def next_name(self) -> str:
        """Name of the next round in phases."""
        return f"{_PREFIX}{self.next_number}"


def _name(number: int) -> str:
    return f"round:{number}"
