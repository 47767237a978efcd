"""Algorithms of reductions that are wrong for operations that do not commute.

Operations that MPI predefines (sums, maxima, ...) commute. A program may create others, and say
that their order matters (``MPI_Op_create`` with ``commute`` 0). Then some algorithms that a library
can be made to use silently give wrong results. Only this table lists them. It contains the values
that were right for every operation, so unchecked algorithms count as wrong.
tests/contract/test_reductions.py measures the table with the installed libraries.

A parameter that is not in the table changes no result. This was measured for all algorithms of
MPICH 4.0.3 and 5.0.2 (which replaces a wrong one), for the components adapt and sm of Open MPI, and
for all other reductions of Intel MPI 2021.18.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Commands that only read a stored result import this module.
    from autotune.space.parameter import Parameter
    from autotune.space.setting import Value
    from autotune.space.space import Space

LIBRARY_CHOOSES = ("0", "ignore")
RIGHT: Mapping[str, Mapping[int, str]] = {
    "coll_tuned_allreduce_algorithm": {
        1: "basic_linear",
        2: "nonoverlapping",
        3: "recursive_doubling",
        6: "rabenseifner",
    },
    "coll_tuned_reduce_algorithm": {1: "linear", 6: "in-order_binary", 7: "rabenseifner"},
    "coll_tuned_reduce_scatter_algorithm": {1: "non-overlapping", 4: "butterfly"},
    "coll_tuned_reduce_scatter_block_algorithm": {
        1: "basic_linear",
        2: "recursive_doubling",
        3: "recursive_halving",
        4: "butterfly",
    },
    "coll_tuned_scan_algorithm": {1: "linear", 2: "recursive_doubling"},
    "coll_tuned_exscan_algorithm": {1: "linear", 2: "recursive_doubling"},
    "coll_libnbc_iallreduce_algorithm": {2: "binomial", 4: "recursive_doubling"},
    "coll_libnbc_ireduce_algorithm": {2: "binomial"},
    "coll_libnbc_iscan_algorithm": {1: "linear", 2: "recursive_doubling"},
    "coll_libnbc_iexscan_algorithm": {1: "linear", 2: "recursive_doubling"},
    "I_MPI_ADJUST_REDUCE_SCATTER_BLOCK": dict.fromkeys((1, 3, 4), ""),
    "I_MPI_ADJUST_IALLREDUCE": dict.fromkeys((*range(1, 8), 9, 17, 18), ""),
    "I_MPI_ADJUST_IREDUCE": dict.fromkeys((1, 2, 4), ""),
}
"""Parameter -> its values that are right for every operation, with the library's names for them.
Intel MPI only has numbers."""
REASON = (
    "its values give wrong results with operations that do not commute, and it is not known "
    "that the program has none (--commutative-only says so)"
)


def needs_commutative(name: str, value: object) -> bool:
    """True if this value of a parameter is wrong for operations that do not commute."""
    right = RIGHT.get(name)
    if right is None:
        return False
    safe_values = {*LIBRARY_CHOOSES, *map(str, right), *filter(None, right.values())}
    # A value of Intel MPI may name several algorithms, each for a range of sizes:
    # 2:0-1024;3:1025-4096.
    return any(part.partition(":")[0].strip() not in safe_values for part in str(value).split(";"))


def commutative_values(setting: Mapping[str, object]) -> dict[str, object]:
    """The part of a setting that is right only if all operations commute."""
    return {name: value for name, value in setting.items() if needs_commutative(name, value)}


def commutative_levels(space: Space) -> dict[str, tuple[Value, ...]]:
    """The levels of a space that are right only if all operations commute."""
    levels_by_name = {parameter.name: tuple(_levels(parameter)) for parameter in space}
    return {name: levels for name, levels in levels_by_name.items() if levels}


def _levels(parameter: Parameter) -> Iterator[Value]:
    return (level for level in parameter.levels if needs_commutative(parameter.name, level))


def for_any_operation(space: Space) -> Space:
    """The space without the levels that are right only if all operations commute."""
    levels = commutative_levels(space)
    return space.without_levels(levels, REASON) if levels else space
