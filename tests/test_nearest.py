"""The nearest names to a mistyped one."""

from __future__ import annotations

import random

from autotune.nearest import edits, nearest
from tests.case_table import case_table

NAMES = [
    "btl_sm_eager_limit",
    "btl_tcp_eager_limit",
    "coll_tuned_bcast_algorithm",
    "pml",
    "UCX_TLS",
]


@case_table(
    ("one", "other", "distance"),
    [
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("kitten", "sitting", 3),
        ("ab", "ba", 2),
        ("abcd", "abd", 1),
    ],
)
def test_edits_are_counted(one: str, other: str, distance: int) -> None:
    assert edits(one, other) == edits(other, one) == distance
    assert edits(one, other, distance) == distance
    assert edits(one, other, max(distance - 1, 0)) >= distance


@case_table(
    ("name", "found"),
    [
        ("btl_sm_eager_limt", ["btl_sm_eager_limit"]),
        ("pmk", ["pml"]),
        ("pmkk", []),
        ("ucx_tsl", ["UCX_TLS"]),
        ("btl_sm_eager_limit", []),
        ("something_else", []),
    ],
)
def test_near_names_are_found_and_far_ones_are_not(name: str, found: list[str]) -> None:
    assert nearest(name, NAMES) == found


def test_nothing_within_two_edits_is_missed() -> None:
    """The pieces by which candidates are chosen leave none out."""
    generator = random.Random(3)
    for _ in range(300):
        name = "".join(generator.choices("ab_", k=generator.randint(7, 20)))
        letters = list(name)
        for _ in range(2):
            letters[generator.randrange(len(letters))] = generator.choice("xyz")
        assert nearest("".join(letters), [name]) == ([] if "".join(letters) == name else [name])
