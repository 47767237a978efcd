"""The base of all rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from autotune.check.finding import Certainty, LaunchFinding, Weight

if TYPE_CHECKING:
    from autotune.check.launch_facts import LaunchFacts


class LaunchRule(ABC):
    """One kind of fault; a class has one code, and its rule may find it several times.

    A rule reads facts and never starts anything. It yields nothing where a fact is unknown: a false
    alarm is worse than a missed fault.
    """

    code: ClassVar[str]
    """``area.fault``, stable; docs/howto/check.md lists all."""
    weight: ClassVar[Weight]
    """The usual weight, by which the rules are ordered; a finding may have a smaller one."""
    summary: ClassVar[str]
    """The fault in one line."""
    explanation: ClassVar[str]
    """Some sentences for ``--why``: what happens, why it costs, how it is found and cured."""

    @abstractmethod
    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """The findings of this rule."""

    def finding(
        self,
        statement: str,
        cost: str,
        certainty: Certainty,
        *,
        weight: Weight | None = None,
        where: str = "",
        corrected_line: tuple[str, ...] | None = None,
        comparison: bool = False,
        advice: str = "",
    ) -> LaunchFinding:
        """A finding with the code of this rule, and its weight unless another one is given."""
        return LaunchFinding(
            self.code,
            self.weight if weight is None else weight,
            statement,
            cost,
            certainty,
            where,
            corrected_line,
            comparison,
            advice,
        )
