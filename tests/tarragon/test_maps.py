"""Maps, spaces and distributions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runtimes.tarragon import (
    BlockingCartesianMap,
    CartesianMap,
    GraphError,
    IdentityMap,
    Map,
    RegularDistribution,
    Space,
    SparseDistribution,
    VariableDistribution,
)
from tests.refusals import refused

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@st.composite
def maps(draw: st.DrawFn) -> Map:
    shape = draw(shapes)
    if draw(st.booleans()):
        return CartesianMap(shape)
    return BlockingCartesianMap(shape, [draw(st.integers(1, extent)) for extent in shape])


@given(maps())
def test_each_place_has_one_number(found: Map) -> None:
    places = [found.coordinates(task) for task in range(found.size)]
    assert len(set(places)) == found.size == math.prod(found.shape)
    assert [found.index(place) for place in places] == list(range(found.size))


@given(maps(), st.booleans())
def test_the_way_back_is_the_way_there(found: Map, periodic: bool) -> None:
    for task in range(found.size):
        for axis, extent in enumerate(found.shape):
            other = found.next(task, axis, periodic)
            if other is None:
                assert not periodic
                assert found.coordinates(task)[axis] == extent - 1
            else:
                assert found.prev(other, axis, periodic) == task


def test_blocks_are_numbered_together() -> None:
    found = BlockingCartesianMap((4, 4), (2, 2))
    assert [found.coordinates(task) for task in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    rows = CartesianMap((4, 4))
    assert [rows.coordinates(task) for task in range(4)] == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_what_is_not_in_a_map_is_refused() -> None:
    line = IdentityMap(3)
    assert line.in_map(2)
    assert not line.in_map(3)
    for wrong in (
        lambda: line.coordinates(3),
        lambda: line.index((3,)),
        lambda: line.index((0, 0)),
    ):
        with pytest.raises(GraphError):
            wrong()
    with refused(GraphError, "tarragon.graph"):
        CartesianMap((2, 0))
    with refused(GraphError, "tarragon.graph"):
        BlockingCartesianMap((2, 2), (3, 1))


def test_the_parts_of_a_space_cover_it() -> None:
    space = Space.uniform((7, 4), (3, 2))
    assert space.widths == ((3, 2, 2), (2, 2))
    assert space.cells == (7, 4)
    assert space.bounds((1, 1)) == ((3, 5), (2, 4))
    with refused(GraphError, "tarragon.graph"):
        Space.uniform((2,), (3,))


@given(st.integers(0, 40), st.integers(1, 7))
def test_every_task_has_one_process(size: int, processes: int) -> None:
    regular = RegularDistribution(size, processes)
    owners = [regular.locate(task) for task in range(size)]
    assert owners == [p for p in range(processes) for _ in regular.tasks(p)]
    counts = [len(regular.tasks(p)) for p in range(processes)]
    assert max(counts) - min(counts) <= 1
    sparse = SparseDistribution([task % processes for task in range(size)], processes)
    assert all(task in sparse.tasks(sparse.locate(task)) for task in range(size))


def test_boundaries_can_be_moved() -> None:
    found = VariableDistribution(10, [0, 5])
    found.update(1, 8)
    assert list(found.tasks(0)) == list(range(8))
    assert found.locate(8) == 1
    with pytest.raises(GraphError, match="ascending"):
        found.update(1, 11)
    with pytest.raises(GraphError, match="expected 0 to 1"):
        SparseDistribution([2], 2)
