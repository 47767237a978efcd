"""What may stand in a table: the algorithms of one collective with segments and fanouts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autotune.errors import UsageError
from autotune.rules import Rule, rules_of
from autotune.space import DEFAULT, Setting, Space, Value

OPERATIONS = {
    "bcast": False, "reduce": False, "allreduce": False,
    "allgather": True, "alltoall": True, "gather": True,
}  # fmt: skip
"""Collectives; whether a rule counts the bytes of all ranks together (field.md G2), where the
micro-benchmark's size is what one rank gives."""
_SEGMENTS = 3
"""Segment sizes tried of an algorithm: the smallest, a middle one and the largest."""


def restricted(space: Space, operation: str) -> Space:
    """The parameters of one collective's algorithms alone, with few segment sizes and fanouts.

    Raises UsageError where the MPI of the space has no such algorithms.
    """
    if operation not in OPERATIONS:
        raise UsageError(
            f"tables for {operation!r} are not supported; expected one of {', '.join(OPERATIONS)}"
        )
    main = f"coll_tuned_{operation}_algorithm"
    if main not in space:
        why = space.absent.get(main, f"space {space.name} does not have it")
        raise UsageError(f"algorithms of {operation} cannot be chosen here: {main}: {why}")
    # A radix has no place in a rule.
    kept = [p for p in space if p.name.startswith(main) and not p.name.endswith("_radix")]
    parameters = tuple(p if p.name == main else replace(p, levels=_few(p.levels)) for p in kept)
    names = {p.name for p in parameters} | set(space.facts)
    rules = tuple(c for c in space.constraints if c.expr.names <= names)
    return replace(
        space, name=f"{operation} algorithms", parameters=parameters, constraints=rules, starts=()
    )


def _few(levels: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(levels) <= _SEGMENTS:
        return levels
    return (levels[0], levels[len(levels) // 2], levels[-1])


def candidates(space: Space) -> list[Setting]:
    """Every algorithm of a restricted space with its segments and fanouts; not the default."""
    return [setting for setting in space.enumerate() if setting != DEFAULT]


@dataclass(frozen=True)
class Entry:
    """From ``size`` on (bytes as the micro-benchmark counts them) ``setting``; the default: the
    library decides."""

    size: int
    setting: Setting


def as_rules(space: Space, operation: str, ranks: int, entries: list[Entry]) -> list[Rule]:
    """The entries as rules of communicators of ``ranks`` and more.

    The first rule is from 0 on, as every reader demands.
    """
    whole = ranks if OPERATIONS[operation] else 1
    found = []
    for entry in entries:
        message = 0 if entry is entries[0] else entry.size * whole
        rule = Rule(operation, ranks, message, "0")
        if entry.setting != DEFAULT:
            known = rules_of(space.launched(entry.setting)["mca"])[0]
            rule = replace(known, comm_size=ranks, message=message)
        found.append(rule)
    return found
