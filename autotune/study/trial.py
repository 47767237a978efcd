"""A trial: a setting and what became of it; and where trials are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from autotune.space import Setting
from autotune.strategies import Observation
from autotune.study.rounds import Freezer


@dataclass
class Trial:
    """A setting and what became of it; ``estimate`` is T / T_default, None where it has none.

    ``effective`` is the setting without parameters whose component was not opened.
    """

    number: int
    setting: Setting
    effective: Setting
    state: str = "running"
    estimate: float | None = None
    reason: str = ""
    attrs: dict[str, object] = field(default_factory=dict)
    reused: bool = False
    elsewhere: bool = False
    """Being measured by another process."""

    def observation(self) -> Observation:
        return Observation(self.number, self.setting, self.estimate, self.state, self.attrs)


class TrialBook(Freezer, Protocol):
    """Where trials are kept, and the plans that were frozen."""

    trials: list[Trial]

    def open(self, setting: Setting, attrs: dict[str, object], origin: str) -> Trial: ...

    def close(self, trial: Trial) -> None: ...

    @property
    def busy(self) -> bool:
        """Whether another worker still measures a trial."""
        ...

    def refresh(self) -> bool:
        """Take over what other workers did meanwhile; whether there was anything."""
        ...

    def known(self, setting: Setting) -> float | None:
        """The ratio that an earlier study measured for this setting under the same conditions."""
        ...


class OthersFaster(Exception):
    """Another worker has opened this very trial, or the last one that was to be made: ask again."""
