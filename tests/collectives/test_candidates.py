"""Candidates of the real lists of two libraries, and their rules."""

from __future__ import annotations

import pytest

from autotune.collective_rules import Rule, check_rules
from autotune.collectives.tournament import OPERATIONS, TableEntry, as_rules, table_candidates
from autotune.dialects import dialect
from autotune.dialects.openmpi import algorithm_space
from autotune.errors import UsageError
from autotune.space import DEFAULT, Space, load_space
from autotune.space.commutativity import RIGHT, for_any_operation
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW, OLD

OPEN_MPI = dialect("openmpi")


def space(library: Library, operation: str, ranks: int = 4) -> Space:
    return OPEN_MPI.space(library, operation, {"ranks": ranks, "cores": 4, "nodes": 1})


@case_table("library", [OLD, NEW])
@case_table("operation", OPERATIONS)
def test_every_candidate_is_a_legal_rule(library: Library, operation: str) -> None:
    found = space(library, operation)
    every = table_candidates(found)
    assert 2 <= len(every) <= 40
    assert len(set(every)) == len(every)
    for setting in every:
        rules = as_rules(OPEN_MPI, found, operation, 4, [TableEntry(8, setting)])
        check_rules(tuple(rules), library)
        assert rules[0].message == 0
        assert rules[0].algorithm != "0"


@pytest.mark.parametrize("operation", ["allgather", "alltoall"])
def test_two_proc_is_for_two(operation: str) -> None:
    def numbers(ranks: int) -> set[object]:
        here = space(NEW, operation, ranks)
        return {s[f"coll_tuned_{operation}_algorithm"] for s in table_candidates(here)}

    assert len(numbers(2)) == len(numbers(4)) + 1


def test_sizes_are_counted_as_the_library_counts() -> None:
    """field.md G2: all-to-all and allgather by the bytes of all ranks, broadcasts by the buffer."""
    for operation, factor in (("bcast", 1), ("alltoall", 4)):
        here = space(NEW, operation)
        first, second = table_candidates(here)[:2]
        entries = [TableEntry(8, DEFAULT), TableEntry(64, first), TableEntry(1024, second)]
        rules = as_rules(OPEN_MPI, here, operation, 4, entries)
        assert rules[0] == Rule(operation, 4, 0, "0")
        assert [r.message for r in rules] == [0, 64 * factor, 1024 * factor]


def test_what_has_no_table() -> None:
    with refused(UsageError, "collectives.no_algorithms"):
        algorithm_space(load_space("null"), "bcast")
    with refused(UsageError, "collectives.operation_unknown"):
        dialect("other")


@case_table("library", [OLD, NEW])
@case_table("operation", ["allreduce", "reduce"])
def test_a_table_names_what_is_right_for_every_operation(library: Library, operation: str) -> None:
    whole = space(library, operation)
    left = table_candidates(for_any_operation(whole))
    main = OPEN_MPI.parameter(operation)
    assert {s[main] for s in left} == set(RIGHT[main])
    gone = [s for s in table_candidates(whole) if s not in left]
    assert gone
    for setting in gone:
        rules = as_rules(OPEN_MPI, whole, operation, 4, [TableEntry(8, setting)])
        assert OPEN_MPI.commutative_rules(rules) == rules
