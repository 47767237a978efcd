"""A parameter: its levels, where it is put on the launch, and when it means anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from autotune.space.nodes import Expr
from autotune.space.setting import Value

Target = Literal["mca", "prte", "pmix", "placement", "env", "arg", "resource"]
"""Where a value goes.

``mca`` / ``prte`` / ``pmix``: run-time parameters of Open MPI, PRRTE, OpenPMIx.  ``placement``:
map_by, bind_to, rank_by.  ``env``: an environment variable.  ``arg``: an option of the program.
``resource``: ranks, processes or workers.
"""

TARGETS: tuple[Target, ...] = ("mca", "prte", "pmix", "placement", "env", "arg", "resource")
PLACEMENT = ("map_by", "bind_to", "rank_by")
RESOURCES = ("ranks", "processes", "workers")


def target_of(name: str) -> Target:
    """The target a parameter of this name has when nothing else is said."""
    if name in PLACEMENT:
        return "placement"
    return "resource" if name in RESOURCES else "mca"


@dataclass(frozen=True)
class Parameter:
    """One thing that may be varied.

    ``name`` is the running library's own name, or ``map_by`` and the like, or an option's name.
    ``levels`` is the grid; "unset" is never among them.  ``default`` is what unset means, if that
    is known and fixed; it need not be on the grid.  ``unset`` tells whether the parameter may be
    left out.  ``when`` is a condition on the others; where it is false a value does nothing.
    ``implies`` are further values launched along with any value of this one.  ``option`` is what
    target ``arg`` puts behind the program (None: ``--name VALUE``).  ``enum`` maps the library's
    numbers to its names for them.
    """

    name: str
    levels: tuple[Value, ...]
    target: Target = "mca"
    default: Value | None = None
    unset: bool = True
    when: Expr | None = None
    implies: Mapping[str, Value] = field(default_factory=dict)
    help: str = ""
    option: str | None = None
    enum: Mapping[int, str] = field(default_factory=dict)

    @property
    def choices(self) -> tuple[Value | None, ...]:
        """What a search may choose from: None (= unset) first where allowed, then the levels.

        Where unset is allowed, a level equal to the default is left out: it is the same choice.
        """
        if not self.unset:
            return self.levels
        return (None, *(level for level in self.levels if level != self.default))

    @property
    def is_text(self) -> bool:
        """Whether values are words rather than numbers."""
        return any(isinstance(level, str) for level in self.levels)

    def normalise(self, value: Value) -> Value:
        """The number for an enumerated name (``"ring"`` -> 4), anything else unchanged."""
        if isinstance(value, str) and not self.is_text:
            for number, name in self.enum.items():
                if name == value:
                    return number
        return value

    def problem(self, value: Value, *, grid: bool = True) -> str | None:
        """What is wrong with this (normalised) value, or None.

        With ``grid`` false any value of the right kind passes; enumerated ones must be legal.
        """
        if value in self.levels or (value == self.default and self.default is not None):
            return None
        if grid:
            return f"is not among its levels ({self.describe_levels()})"
        if self.enum and not self.is_text and value not in self.enum:
            legal = ", ".join(f"{number} {name}" for number, name in self.enum.items())
            return f"is not a value the library knows ({legal})"
        if isinstance(value, str) != self.is_text:
            return f"must be {'a word' if self.is_text else 'a number'}"
        return None

    def describe_levels(self) -> str:
        """The levels as text; of many, the first and last few."""
        words = [str(level) for level in self.levels]
        if len(words) > 12:
            words = [*words[:5], "...", *words[-2:]]
        return ", ".join(words)
