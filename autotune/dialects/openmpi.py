"""Open MPI: the algorithms of coll/tuned, by number, in its rules file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autotune.collective_rules import Rule, check_rules, rules_of, rules_text
from autotune.dialects.base import RuleDialect, write_file
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space, Value, load_space
from runner.mpi.library import Library
from runner.mpi.openmpi.rules import ENABLE, FILE

_SEGMENTS = 3
"""Number of segment sizes tried of an algorithm: smallest, middle and largest."""


class OpenMpiDialect(RuleDialect):
    family = "openmpi"
    # coll_tuned_dynamic_file.c of Open MPI.
    sums = frozenset({"allgather", "alltoall", "gather"})

    def parameter(self, operation: str) -> str:
        return _main(operation)

    def space(self, library: Library, operation: str, facts: Mapping[str, Value]) -> Space:
        return algorithm_space(load_space("openmpi", library, facts), operation)

    def rule(self, space: Space, operation: str, setting: Setting) -> Rule:
        return rules_of(space.launched(setting)["mca"])[0]

    def loading(
        self, rules: Sequence[Rule], library: Library, place: Path, stem: str
    ) -> tuple[Parameter, ...]:
        """A rules file that every Open MPI up to 5 reads."""
        check_rules(tuple(rules), library)
        path = write_file(rules_text(tuple(rules)), place, stem, ".rules")
        return (Parameter(FILE, (str(path),), "mca", implies={ENABLE: 1}),)

    def names(self, library: Library, operation: str) -> dict[str, str]:
        info = library.params.get(_main(operation))
        return {str(number): word for number, word in (info.enum if info else {}).items()}


def _main(operation: str) -> str:
    return f"coll_tuned_{operation}_algorithm"


def algorithm_space(space: Space, operation: str) -> Space:
    """The space of one collective's algorithms only, with few segment sizes and fanouts.

    Raises UsageError if the MPI of the space has no such algorithms.
    """
    main = _main(operation)
    if main not in space:
        why = space.absent.get(main, f"space {space.name} does not have it")
        raise UsageError(
            f"algorithms of {operation} cannot be chosen here: {main}: {why}",
            code="collectives.no_algorithms",
        )
    # A rule cannot state a radix.
    own_parameters = [p for p in space if p.name.startswith(main) and not p.name.endswith("_radix")]
    parameters = tuple(
        p if p.name == main else replace(p, levels=_few(p.levels)) for p in own_parameters
    )
    names = {p.name for p in parameters} | set(space.facts)
    rules = tuple(c for c in space.constraints if c.expr.names <= names)
    return replace(
        space, name=f"{operation} algorithms", parameters=parameters, constraints=rules, starts=()
    )


def _few(levels: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(levels) <= _SEGMENTS:
        return levels
    return (levels[0], levels[len(levels) // 2], levels[-1])
