"""Intel MPI: presets of algorithms, by number, with ranges of sizes in I_MPI_ADJUST_* variables.

Seen with 2021.18.1: the library divides the sizes at the upper ends of the ranges, and the last
range applies to everything above. With ranges of ranks (``PRESET:SIZES@RANKS``) it applies only the
last range of sizes, to all sizes, so a value is for every number of ranks. No preset means the
library's own choice: 0 is another preset, often a slow one. So a table names a preset for every
size. The library ignores an invalid value with a message, which is read back.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.collective_rules import MOST, Rule
from autotune.dialects.base import LIBRARY_DECIDES, RuleDialect
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space, Value
from runner.mpi.library import Library


class IntelDialect(RuleDialect):
    family = "impi"
    leaves_sizes = False
    sums = frozenset()  # As seen: allgather and alltoall count the bytes of one rank.

    def parameter(self, operation: str) -> str:
        return _main(operation)

    def space(self, library: Library, operation: str, facts: Mapping[str, Value]) -> Space:
        return Space(
            f"{operation} algorithms",
            (Parameter(_main(operation), self._presets(library, operation)),),
            facts=facts,
        )

    def _presets(self, library: Library, operation: str) -> tuple[int, ...]:
        name = _main(operation)
        info = library.params.get(name)
        numbers = tuple(number for number in sorted(info.enum) if number) if info else ()
        if not numbers:
            raise UsageError(
                f"algorithms of {operation} cannot be chosen here: this library does not list the "
                f"values of {name} (impi_info)",
                code="collectives.no_algorithms",
            )
        return numbers

    def rule(self, space: Space, operation: str, setting: Setting) -> Rule:
        return Rule(operation, 1, 0, str(setting[_main(operation)]))

    def loading(
        self, rules: Sequence[Rule], library: Library, place: Path, stem: str
    ) -> tuple[Parameter, ...]:
        return tuple(Parameter(n, (value,)) for n, value in self.variables(rules).values())

    def names(self, library: Library, operation: str) -> dict[str, str]:
        return {str(n): f"preset {n}" for n in self._presets(library, operation)}

    def variables(self, rules: Sequence[Rule]) -> dict[str, tuple[str, str]]:
        return {
            name: (_main(name), _value([rule for rule in rules if rule.collective == name]))
            for name in dict.fromkeys(rule.collective for rule in rules)
        }


def _main(operation: str) -> str:
    return f"I_MPI_ADJUST_{operation.upper()}"


def _value(rules: Sequence[Rule]) -> str:
    """``PRESET:FIRST-LAST;...``, for any number of ranks.

    Raises UsageError for a rule that leaves its sizes to the library, and for tables that differ
    between numbers of ranks.
    """
    for rule in rules:
        if rule.algorithm == LIBRARY_DECIDES or not rule.algorithm.isdecimal():
            raise UsageError(
                f"the rule for {rule.collective} from {rule.message} bytes names the algorithm "
                f"{rule.algorithm!r}: Intel MPI needs the number of a preset for every size",
                code="collectives.algorithm_unknown",
            )
    tables: dict[int, list[tuple[int, str]]] = {}
    for rule in rules:
        tables.setdefault(rule.comm_size, []).append((rule.message, rule.algorithm))
    own, *others = [sorted(table) for table in tables.values()]
    if any(other != own for other in others):
        raise UsageError(
            f"the tables of {rules[0].collective} for {', '.join(map(str, sorted(tables)))} ranks "
            "differ, and a value of Intel MPI cannot hold both: of the ranges of sizes for one "
            "range of ranks (PRESET:SIZES@RANKS) the library obeys the last one only, for all "
            "sizes.\nMeasure one number of ranks: autotune collectives --ranks N",
            code="collectives.tables_differ",
        )
    starts = [0, *(message for message, _ in own[1:]), MOST + 1]
    pairs = zip(itertools.pairwise(starts), own, strict=True)
    return ";".join(f"{preset}:{first}-{end - 1}" for (first, end), (_, preset) in pairs)
