"""Arrays that record exactly which of their elements are read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.runtimes.check.array import WatchedArray, watched
from runner.runtimes.check.memory import EXPOSED, READ_AFTER, WRITTEN, WatchedMemory
from runner.runtimes.check.watch import Watch
from runner.runtimes.core.blas import dgemm
from runner.runtimes.core.c_function import CFunction
from runner.runtimes.core.library import add_product
from tests.case_table import case_table

Flags = dict[int, int]


def record(array: NDArray[Any], use: Callable[[Any], Any]) -> Flags:
    """The flags of each element that ``use`` touches, by its place in memory."""
    memory = WatchedMemory()
    memory.is_recording = True
    use(watched(array, memory))
    flags: Flags = {}
    for number, runs in memory.take().items():
        assert memory.blocks[number].owner is array
        for start, stop, flag in zip(runs.starts, runs.stops, runs.flags, strict=True):
            for place in range(int(start), int(stop), array.itemsize):
                flags[place // array.itemsize] = int(flag)
    return flags


def every(flag: int, *places: int) -> Flags:
    return dict.fromkeys(places, flag)


def assign(target: Any, key: Any, value: Any) -> None:
    target[key] = value


@case_table(
    ("use", "flags"),
    [
        (lambda a: a[1], every(EXPOSED, 1)),
        (lambda a: a[np.uint64(2)], every(EXPOSED, 2)),
        (lambda a: a[2:4], {}),
        (lambda a: a[2:4] + 1, every(EXPOSED, 2, 3)),
        (lambda a: a[[0, 5]], every(EXPOSED, 0, 5)),
        (lambda a: a[a > 3], every(EXPOSED, *range(6))),
        (lambda a: a.reshape(2, 3)[:, 1].sum(), every(EXPOSED, 1, 4)),
        (lambda a: a[::-2].max(), every(EXPOSED, 1, 3, 5)),
        (lambda a: list(a[:2]), every(EXPOSED, 0, 1)),
        (lambda a: np.sum(a[4:]), every(EXPOSED, 4, 5)),
        (lambda a: np.concatenate([a[:1], a[5:]]), every(EXPOSED, 0, 5)),
        (lambda a: float(a[3:4][0]), every(EXPOSED, 3)),
        (lambda a: assign(a, 1, 0), every(WRITTEN, 1)),
        (lambda a: assign(a, slice(0, 6, 3), 7), every(WRITTEN, 0, 3)),
        (lambda a: assign(a, 0, a[1]), {0: WRITTEN, 1: EXPOSED}),
        (lambda a: a[:2].fill(1), every(WRITTEN, 0, 1)),
        (lambda a: np.copyto(a[:1], a[1:2]), {0: WRITTEN, 1: EXPOSED}),
        (lambda a: np.add(a[2:3], 1, out=a[3:4]), {2: EXPOSED, 3: WRITTEN}),
        (lambda a: a[4:].sort(), every(EXPOSED | WRITTEN, 4, 5)),
        (lambda a: np.add.at(a, [1, 1], 2), every(EXPOSED | WRITTEN, 1)),
        (lambda a: (assign(a, 0, 1), a[0]), every(WRITTEN | READ_AFTER, 0)),
        (lambda a: (a[0], assign(a, 0, 1)), every(EXPOSED | WRITTEN, 0)),
        (lambda a: (a.shape, len(a), a.T, np.zeros_like(a)), {}),
        (lambda a: a.copy(), every(EXPOSED, *range(6))),
    ],
)
def test_the_touched_elements(use: Callable[[Any], Any], flags: Flags) -> None:
    assert record(np.arange(6.0), use) == flags


def test_parts_of_elements_are_recorded_too() -> None:
    memory = WatchedMemory()
    memory.is_recording = True
    array = watched(np.arange(6.0), memory)
    assert array[1] + array.view(np.uint8)[17] == 1
    (runs,) = memory.take().values()
    assert (runs.starts.tolist(), runs.stops.tolist()) == ([8, 17], [16, 18])


def test_in_place_operators_read_and_write() -> None:
    def add(a: Any) -> None:
        a[1:3] += 1

    assert record(np.arange(6.0), add) == every(EXPOSED | WRITTEN, 1, 2)


def test_results_are_plain_arrays() -> None:
    array = watched(np.arange(6.0), WatchedMemory())
    assert type(array + 1) is np.ndarray
    assert type(array.copy()) is np.ndarray
    assert type(array[1:]) is WatchedArray
    assert type(array[[1, 2]]) is np.ndarray


def test_a_c_function_only_reads_its_constant_arrays() -> None:
    memory = WatchedMemory()
    watch = Watch(memory)
    a, b, c = np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 2))
    product = watch.value(dgemm(), "dgemm")
    memory.is_recording = True
    add_product(product, *(watch.value(m, n) for m, n in ((a, "a"), (b, "b"), (c, "c"))))
    assert c.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    flags = {
        memory.blocks[number].name: set(runs.flags.tolist())
        for number, runs in memory.take().items()
    }
    assert flags == {"a": {EXPOSED}, "b": {EXPOSED}, "c": {EXPOSED | WRITTEN}}


def test_a_signature_may_say_what_is_constant() -> None:
    function = CFunction(1, "void(int64, const float64*, float64*)")
    assert function.arguments == ("int64", "float64*", "float64*")
    assert function.constants == {1}
    with pytest.raises(ValueError, match="constfloat64"):
        CFunction(1, "void(constfloat64*)")


def test_a_box_is_named_by_its_indices() -> None:
    memory = WatchedMemory()
    field = np.zeros((4, 5, 6))
    memory.name(field, "field")
    memory.is_recording = True
    watched(field, memory)[1, 2:4, 3].sum()
    ((number, runs),) = memory.take().items()
    text = memory.blocks[number].describe(runs.starts.tolist(), runs.stops.tolist())
    assert text == "field[1, 2:4, 3]"
