"""Switch points from times: the published configuration takes the forms that were fastest."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.collectives.multi_object import FORMS
from autotune.collectives.switch_points import LIBRARY, ORDER, switch_points
from runner.runtimes.intranode.mcoll import Config

SIZES = (8, 1024, 65536, 1048576)


def forms_taken(operation: str, switches: dict[str, int]) -> list[str]:
    config = Config(**switches)  # type: ignore[arg-type]
    return [config.form(operation, size) for size in SIZES]


@pytest.mark.parametrize("operation", ORDER)
def test_every_order_of_forms_is_what_the_library_takes(operation: str) -> None:
    words = [form for form, _ in ORDER[operation]]
    assert set(words) <= {*FORMS[operation], LIBRARY}
    for wanted in combinations_with_replacement(words, len(SIZES)):
        times = {(w, 0): [1.0 if form == w else 2.0 for form in wanted] for w in words}
        found = switch_points(operation, SIZES, times)
        assert forms_taken(operation, found) == list(wanted)


def test_one_object_is_published_where_it_is_faster_over_all_sizes() -> None:
    times = {("bruck", 0): [1.0, 1, 9, 9], ("ring", 0): [9.0, 9, 9, 9],
             ("bruck", 1): [1.1, 1.1, 5, 5], ("ring", 1): [9.0, 9, 1, 1],
             (LIBRARY, 0): [8.0] * 4}  # fmt: skip
    found = switch_points("allgather", SIZES, times)
    assert found == {"objects": 1, "allgather_switch": 65536, "allgather_mpi_from": 0}


def test_a_form_that_failed_is_not_taken() -> None:
    times = {("bruck", 0): [math.inf] * 4, ("ring", 0): [3.0] * 4, (LIBRARY, 0): [math.inf] * 4}
    assert forms_taken("allgather", switch_points("allgather", SIZES, times)) == ["ring"] * 4
    assert switch_points("allgather", SIZES, {("bruck", 0): [math.inf] * 4}) == {}


ROW = st.lists(st.floats(0.1, 10), min_size=len(SIZES), max_size=len(SIZES))


@given(st.fixed_dictionaries({form: ROW for form, _ in ORDER["allreduce"]}))
def test_no_order_of_forms_is_faster(times: dict[str, list[float]]) -> None:
    found = switch_points("allreduce", SIZES, {(form, 0): row for form, row in times.items()})

    def product(forms: list[str]) -> float:
        return math.prod(times[form][n] for n, form in enumerate(forms))

    taken = product(forms_taken("allreduce", found))
    for other in combinations_with_replacement(
        [form for form, _ in ORDER["allreduce"]], len(SIZES)
    ):
        assert taken <= product(list(other)) * (1 + 1e-6)
