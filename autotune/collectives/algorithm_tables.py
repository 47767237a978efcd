"""The result of ``autotune collectives``: rules tables with their evidence."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, computed_field

from autotune.artifacts import ArtifactStore, content_id
from autotune.collective_rules import Rule
from autotune.collectives.multi_object import Rivalry
from autotune.collectives.table_proof import SizeEvidence
from autotune.dialects import dialect
from autotune.dialects.base import LIBRARY_DECIDES
from autotune.document import Omitted, from_json, to_json
from autotune.targets.rows import MpiChoiceRow

SCHEMA = "autotune-collectives-1"


@dataclass(frozen=True)
class TablePart:
    """The table of one operation on one number of ranks.

    ``rules``: the entries of the table as rules.  ``evidence``: the proof at each size.
    ``points``: number of measurements (a candidate at a size) in the search; ``grid``: the number
    that a full grid needs.  ``launches``: number of program starts in search and proof.
    """

    operation: str
    ranks: int
    rules: tuple[Rule, ...]
    evidence: tuple[SizeEvidence, ...]
    points: int
    grid: int
    launches: int
    check: tuple[str, ...]
    multi_object: Omitted[Rivalry] = None
    """The comparison with collectives of several objects on each node, if it was asked for."""

    @property
    def has_changes(self) -> bool:
        """True if any rule differs from the library's own choice."""
        return any(rule.algorithm != LIBRARY_DECIDES for rule in self.rules)


@dataclass(frozen=True)
class CollectiveResult:
    """The tables of a cluster.  ``algorithms`` maps an operation's numbers to their names;
    ``left_out`` names the tables that the budget did not allow.

    Without the guard (``guarded`` False) the rules only looked better: nothing is proven.
    ``commutative_only``: the user said that all operations of the cluster's programs commute, so
    the rules may be wrong for others.
    """

    schema_: Annotated[Literal["autotune-collectives-1"], Field(alias="schema")] = field(
        default="autotune-collectives-1", kw_only=True
    )
    cluster: str
    machine: str
    mpi: dict[str, str]
    date: str
    parts: tuple[TablePart, ...]
    algorithms: dict[str, dict[str, str]]
    left_out: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    guarded: Annotated[bool, Field(exclude_if=bool)] = True
    commutative_only: Annotated[bool, Field(exclude_if=operator.not_)] = False
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content but ``mpi_choice``, which says nothing of
        what was measured."""
        return content_id(to_json(self, "id", "mpi_choice"))

    @property
    def has_changes(self) -> bool:
        """True if any rule differs from the library's own choice, proven or not."""
        return any(part.has_changes for part in self.parts)

    @property
    def is_proven(self) -> bool:
        return self.guarded and self.has_changes

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules for a file; for more ranks than measured the library decides, if the table
        allows this."""
        leaves = dialect(self.mpi["name"]).leaves_sizes
        table_rules: list[Rule] = []
        for operation in dict.fromkeys(part.operation for part in self.parts):
            own = [part for part in self.parts if part.operation == operation]
            if not any(part.has_changes for part in own):
                continue
            for part in own:
                table_rules += part.rules if leaves or part.has_changes else ()
            if leaves:
                most = max(part.ranks for part in own)
                table_rules.append(Rule(operation, most + 1, 0, LIBRARY_DECIDES))
        return tuple(table_rules)

    def algorithm(self, part: TablePart, size: int) -> str:
        """The algorithm of the table at a size, by name; "-" if the library decides."""
        is_sum = part.operation in dialect(self.mpi["name"]).sums
        whole = part.ranks if is_sum else 1
        rule = [r for r in part.rules if r.message <= size * whole][-1]
        if rule.algorithm == LIBRARY_DECIDES:
            return "-"
        name = self.algorithms[part.operation].get(rule.algorithm, rule.algorithm)
        segment = f" {rule.segment // 1024}k" if rule.segment else ""
        return f"{name}{segment}" + (f" x{rule.fanout}" if rule.fanout else "")

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``."""
        return to_json(self)


def _parse(data: dict[str, Any]) -> CollectiveResult:
    return from_json(CollectiveResult, data)


TABLES = ArtifactStore("collectives", "table of collectives", SCHEMA, _parse)
"""The artifact store of all tables."""
