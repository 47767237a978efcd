"""Levels that are wrong for operations that do not commute, in settings and spaces."""

from __future__ import annotations

import pytest

from autotune.space import LibraryChoice, Parameter, Setting, Space, load_space, parse_expression
from autotune.space.commutativity import (
    commutative_levels,
    commutative_values,
    for_any_operation,
    needs_commutative,
)
from tests.case_table import case_table
from tests.space.libraries import NEW, OLD

ALLREDUCE = "coll_tuned_allreduce_algorithm"
BLOCK = "I_MPI_ADJUST_REDUCE_SCATTER_BLOCK"


@case_table(
    ("name", "value", "wrong"),
    [
        (ALLREDUCE, 3, False),
        (ALLREDUCE, "recursive_doubling", False),
        (ALLREDUCE, 4, True),
        (ALLREDUCE, "4", True),
        (ALLREDUCE, "segmented_ring", True),
        (ALLREDUCE, "ignore", False),
        (ALLREDUCE, 0, False),
        (ALLREDUCE, 12, True),
        ("coll_tuned_bcast_algorithm", 4, False),
        (BLOCK, "1:0-1024;3:1025-4096", False),
        (BLOCK, "1:0-1024;2:1025-4096", True),
        (BLOCK, 2, True),
        ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "ring", False),
    ],
)
def test_a_value(name: str, value: object, wrong: bool) -> None:
    """An algorithm that the table does not list counts as wrong."""
    assert needs_commutative(name, value) is wrong
    assert bool(commutative_values({name: value, "btl": "self"})) is wrong


def space(**more: object) -> Space:
    segment = Parameter(
        "segment", (1024, 4096), when=parse_expression(f"{ALLREDUCE} == 5 and nodes == 1")
    )
    starts = (Setting({ALLREDUCE: 4}), Setting({ALLREDUCE: 3}))
    first = Parameter(ALLREDUCE, (3, 4, 5), default=0, enum={3: "recursive_doubling", 4: "ring"})
    other = Parameter("other", (1, 2), when=parse_expression(f"{ALLREDUCE} != 4"))
    alone = Parameter("alone", (1,), when=parse_expression(f"{ALLREDUCE} == 5"))
    return Space("s", (first, segment, other, alone), starts=starts, facts={"nodes": 1})


def test_a_space_without_them() -> None:
    whole = space()
    assert commutative_levels(whole) == {ALLREDUCE: (4, 5)}
    left = for_any_operation(whole)
    assert left[ALLREDUCE].levels == (3,)
    assert left.starts == (Setting({ALLREDUCE: 3}),)
    assert "other" in left
    assert "alone" not in left
    assert "alone" in left.absent
    assert for_any_operation(left) is left


def test_a_parameter_that_has_no_other_level_is_absent_with_the_reason() -> None:
    left = for_any_operation(Space("s", (Parameter(ALLREDUCE, (4, 5)),)))
    assert len(left) == 0
    assert ALLREDUCE in left.absent


def test_the_libraries_of_a_choice_lose_them_too() -> None:
    choice = LibraryChoice.of(space(), {"other-1": space()})
    left = for_any_operation(choice)
    assert left[ALLREDUCE].levels == (3,)
    assert not commutative_levels(left)
    assert left.is_valid(Setting({"mpi": "other-1", ALLREDUCE: 3}))
    assert not left.is_valid(Setting({"mpi": "other-1", ALLREDUCE: 4}))


@pytest.mark.parametrize("library", [NEW, OLD])
def test_the_shipped_space_has_none_left(library: object) -> None:
    whole = load_space("openmpi", library, {"ranks": 4, "cores": 4, "nodes": 1})  # type: ignore[arg-type]
    assert commutative_levels(whole)
    left = for_any_operation(whole)
    assert not commutative_levels(left)
    assert left.hash != whole.hash
