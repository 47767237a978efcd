"""A finding: one true statement about a launch, its cost, and the corrected line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Weight(IntEnum):
    """What a fault costs; the larger number is the graver one."""

    SLIGHT = 1
    """Less than 10 % of the time."""
    TENTH = 2
    """10 to 100 % of the time."""
    OVER_TWICE = 3
    """The launch takes more than twice the time."""
    WRONG = 4
    """The launch does not do what the line says: wrong results, N jobs for one, an error."""

    @property
    def is_grave(self) -> bool:
        """True for the two gravest classes, for which the command ends with exit code 1."""
        return self >= Weight.OVER_TWICE

    @property
    def title(self) -> str:
        """The class in words, for the report and for JSON."""
        return {
            Weight.SLIGHT: "< 10 %",
            Weight.TENTH: "10 to 100 %",
            Weight.OVER_TWICE: "> 2x",
            Weight.WRONG: "wrong",
        }[self]


class Certainty(StrEnum):
    """How a statement is known."""

    SEEN = "seen"
    """It was read from the ranks while the launch ran."""
    KNOWN = "known"
    """It follows from the line, the files in force and the library."""
    LIKELY = "likely"
    """It holds for most programs; only the program itself can show it."""


@dataclass(frozen=True)
class LaunchFinding:
    """One fault of a launch.

    ``statement`` says what is, ``cost`` why it costs time or results, ``where`` names the rank,
    option, variable or file. ``corrected_line`` is a command line (arguments, with assignments of
    variables before the launcher); None: no line cures it. ``comparison``: the claim is about
    speed, and ``autotune compare`` of both lines can prove it.
    """

    code: str
    weight: Weight
    statement: str
    cost: str
    certainty: Certainty
    where: str = ""
    corrected_line: tuple[str, ...] | None = None
    comparison: bool = False
    advice: str = ""
    """What to do beside the line, or in its place: a setting of the machine, a file to edit."""
