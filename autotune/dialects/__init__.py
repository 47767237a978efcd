"""Dialects: each MPI family's names for the algorithms of collectives in a table.

A dialect lists the candidates of one collective, turns a setting into a rule, and loads rules into
a launch. Other modules use a library's dialect and never compare family names.
"""

from __future__ import annotations

from autotune.dialects.base import RuleDialect
from autotune.dialects.impi import IntelDialect
from autotune.dialects.mpich import MpichDialect
from autotune.dialects.openmpi import OpenMpiDialect
from autotune.errors import UsageError

_ALL: tuple[RuleDialect, ...] = (OpenMpiDialect(), MpichDialect(), IntelDialect())


def dialect(family: str) -> RuleDialect:
    """The dialect of a family; raises UsageError if it has none."""
    for one in _ALL:
        if one.family == family:
            return one
    raise UsageError(
        f"there are no tables of collectives for {family}; expected one of "
        f"{', '.join(one.family for one in _ALL)}",
        code="collectives.operation_unknown",
    )


__all__ = ["RuleDialect", "dialect"]
