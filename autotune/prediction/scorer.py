"""What every model is: it says of each candidate setting how fast a program would be with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from autotune.prediction.examples import Example, Floats
from autotune.space import Setting, Value

Options = Mapping[str, float | str]


@dataclass(frozen=True)
class Effect:
    """Of one parameter: the share of the run time that it acts on, and its log(T / T_default)."""

    touched: float
    log: float


class Scorer(ABC):
    """A fitted model.  Pure: the same examples and options give the same model."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    grid: ClassVar[tuple[Options, ...]]
    """Options that cross-validation chooses from."""

    @classmethod
    @abstractmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Scorer:
        """Learn.  ``defaults`` are the values of unset parameters, where known."""

    @abstractmethod
    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        """Expected log(T / T_default) of each candidate for a program with these features.

        Lower is better; a candidate about which nothing is known, like the default, has 0.
        """

    def why(self, values: Mapping[str, float], setting: Setting) -> dict[str, Effect]:
        """What each of its parameters is expected to do; nothing where the model cannot tell."""
        return {}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that :meth:`from_json` needs, as JSON types."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scorer:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""
