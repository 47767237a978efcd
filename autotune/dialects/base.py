"""The interface to a dialect."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from autotune.collective_rules import Rule
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space, Value
from autotune.space.commutativity import needs_commutative
from runner.files.private_files import private_folder, write_private
from runner.mpi.library import Library

LIBRARY_DECIDES = "0"
"""The algorithm of a rule that leaves the choice to the library, in every family."""


class RuleDialect(ABC):
    """The rules of one family of libraries."""

    family: ClassVar[str]
    leaves_sizes: ClassVar[bool] = True
    """True if a rule can leave sizes to the library's own choice. If not, a table names an
    algorithm for every size, and is proven as a whole."""
    sums: ClassVar[frozenset[str]]
    """Collectives whose rules count the bytes of all ranks together, while the size of the
    micro-benchmark is that of one rank."""

    @abstractmethod
    def parameter(self, operation: str) -> str:
        """The parameter of the library that chooses the algorithm of one collective."""

    def commutative_rules(self, rules: Sequence[Rule]) -> list[Rule]:
        """The rules that give wrong results with operations that do not commute."""
        return [r for r in rules if needs_commutative(self.parameter(r.collective), r.algorithm)]

    @abstractmethod
    def space(self, library: Library, operation: str, facts: Mapping[str, Value]) -> Space:
        """The algorithms of one collective, with the few other values that matter.

        Raises UsageError if they cannot be selected in this library.
        """

    @abstractmethod
    def rule(self, space: Space, operation: str, setting: Setting) -> Rule:
        """The rule, for all sizes, that has the effect of a setting of :meth:`space`."""

    @abstractmethod
    def loading(
        self, rules: Sequence[Rule], library: Library, place: Path, stem: str
    ) -> tuple[Parameter, ...]:
        """Parameters with one level each that make a launch obey the rules of one collective.

        Files are written below ``place``; their names start with ``stem`` and depend only on the
        content, because runs are stored under them. Raises UsageError if they cannot be written.
        """

    @abstractmethod
    def names(self, library: Library, operation: str) -> dict[str, str]:
        """The rules' names of algorithms, and their names for readers."""

    def variables(self, rules: Sequence[Rule]) -> dict[str, tuple[str, str]]:
        """Rules as environment variables: collective -> name and value.

        Empty if the family uses files.
        """
        return {}


def write_file(text: str, place: Path, stem: str, suffix: str) -> Path:
    """The file with ``text`` below ``place``; its name depends on the text."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = place / f"{stem}-{digest}{suffix}"
    try:
        private_folder(place)
        write_private(path, text)
    except OSError as problem:
        raise UsageError(
            f"cannot write {path}: {problem.strerror}", code="file.unwritable"
        ) from None
    return path
