"""Regions with gaps, and copies and sums of their parts, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.runtimes.core.kernels import load
from runner.runtimes.intranode import Region, RegionError
from runner.runtimes.intranode.cab_records import ADD_REALS, ADD_WORDS, BOUNCE
from runner.runtimes.intranode.region import elements
from tests.refusals import refused

OPERATIONS = {"reals": ADD_REALS, "words": ADD_WORDS}
TYPES = st.sampled_from([np.uint8, np.int16, np.float32, np.float64, np.complex128])
SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)
BIG = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))


@st.composite
def faces(draw: st.DrawFn, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """An array of zeros of this shape that is a part of a larger one."""
    steps = [draw(st.integers(1, 3)) for _ in shape]
    more = [draw(st.integers(0, 2)) for _ in shape]
    whole = np.zeros([n * step + m for n, step, m in zip(shape, steps, more, strict=True)], kind)
    return whole[tuple(slice(0, n * step, step) for n, step in zip(shape, steps, strict=True))]


def words(array: NDArray[Any]) -> NDArray[np.int64]:
    return np.array(Region.of(array).words(), np.int64)


def numbers(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    return (np.arange(np.prod(shape)) % 251 + 1).reshape(shape).astype(kind)


@given(st.data(), SHAPES, TYPES)
def test_a_region_has_the_bytes_of_its_array(
    data: st.DataObject, shape: tuple[int, ...], kind: Any
) -> None:
    array = data.draw(faces(shape, kind))
    array[...] = numbers(shape, kind)
    region = Region.of(array)
    assert region.size == array.nbytes
    assert region.whole == array.flags.c_contiguous
    found = []
    places = [region.address]
    for count, stride in reversed(region.axes):
        places = [place + n * stride for place in places for n in range(count)]
    base = array if array.base is None else array.base
    memory = base.reshape(-1).view(np.uint8)
    for place in places:
        first = place - base.ctypes.data
        found.append(memory[first : first + region.run])
    assert np.concatenate(found).tobytes() == array.tobytes()


@given(st.data(), BIG, st.sampled_from([np.uint8, np.float32, np.float64]))
def test_parts_of_a_copy_are_the_copy(
    data: st.DataObject, shape: tuple[int, int, int], kind: Any
) -> None:
    source, target = data.draw(faces(shape, kind)), data.draw(faces(shape, kind))
    source[...] = numbers(shape, kind)
    size, chunk = source.nbytes, 64 * data.draw(st.integers(1, 800))
    begins = data.draw(st.permutations(range(0, size, chunk)))
    bounce = np.zeros(BOUNCE, np.uint8)
    to, of = words(target), words(source)
    move = load("tests.intranode.move_kernel").function("move_part")
    for begin in begins:
        end = min(begin + chunk, size)
        move(to.ctypes.data, of.ctypes.data, begin, end, bounce.ctypes.data)
    assert np.array_equal(target, source)
    if target.base is not None:
        assert target.base.astype(np.float64).sum() == source.astype(np.float64).sum()


@given(st.integers(1, 3000), st.integers(1, 40), st.sampled_from([np.float64, np.int64, np.uint64]))
def test_parts_of_a_sum_are_the_sum(count: int, chunks: int, kind: Any) -> None:
    target, source = numbers((count,), kind), numbers((count,), kind)[::-1].copy()
    expected = target + source
    add = load("tests.intranode.move_kernel").function("add_part")
    to, of, operation = target.ctypes.data, source.ctypes.data, OPERATIONS[elements(target)]
    for begin in range(0, target.nbytes, 64 * chunks):
        add(to + begin, of + begin, min(64 * chunks, target.nbytes - begin), operation)
    assert np.array_equal(target, expected)


@given(st.data(), BIG, st.sampled_from([np.float64, np.int64]))
def test_parts_of_a_sum_with_gaps_are_the_sum(
    data: st.DataObject, shape: tuple[int, int, int], kind: Any
) -> None:
    target, source = data.draw(faces(shape, kind)), numbers(shape, kind)
    target[...] = 3
    size, chunk = source.nbytes, 8 * data.draw(st.integers(50, 6400))
    to, of, operation = words(target), source.ctypes.data, OPERATIONS[elements(source)]
    put = load("tests.intranode.move_kernel").function("put_part")
    for begin in data.draw(st.permutations(range(0, size, chunk))):
        put(of + begin, to.ctypes.data, begin, min(begin + chunk, size), operation)
    assert np.array_equal(target, source + 3)
    if target.base is not None:
        assert target.base.sum() == target.sum()


def test_what_is_no_region_is_refused() -> None:
    whole = np.zeros((4, 4, 4, 4, 4))
    with refused(RegionError, "intranode.array"):
        Region.of(whole[::2, ::2, ::2, ::2, 0])
    with refused(RegionError, "intranode.array"):
        Region.of(whole[::-1])
    with refused(RegionError, "intranode.array"):
        elements(whole[..., 0])
    with refused(RegionError, "intranode.array"):
        elements(np.zeros(3, np.float32))


def test_an_empty_array_is_a_region_of_no_bytes() -> None:
    assert Region.of(np.zeros((3, 0))).size == 0


def test_axes_without_gaps_are_one() -> None:
    whole = np.zeros((5, 6, 7))
    assert Region.of(whole).axes == ()
    assert Region.of(whole[:, 2:4]).axes == ((5, 6 * 7 * 8),)
    assert Region.of(whole[:, :, 3]).axes == ((30, 7 * 8),)
    assert Region.of(whole[1:3, 1:3, 1:3]).axes == ((2, 56), (2, 336))
