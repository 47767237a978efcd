"""Library functions of compiled regions: the same results compiled, in Python and from numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.runtimes import mate
from runner.runtimes.core import library
from tests.mate.compiled.running import run_both, state

COPIES = mate.Graph("copies")
FACES = mate.Graph("faces")
SUMS = mate.Graph("sums")


@COPIES.region(compiled=True)
def copy(part: Any, i: int) -> None:
    for n in range(part.boxes.shape[0]):
        library.pack(part.source, part.boxes[n], part.buffers[n])
        library.unpack(part.target, part.boxes[n], part.buffers[n])


@FACES.region(compiled=True)
def swap(part: Any, i: int) -> None:
    for axis in range(3):
        for side in range(2):
            own = library.face(part.field, axis, side, part.depth, False)
            library.pack(part.field, own, part.buffer)
            ghost = library.face(part.field, axis, 1 - side, part.depth, True)
            library.unpack(part.field, ghost, part.buffer)


@SUMS.region(compiled=True)
def reduce(part: Any, i: int) -> None:
    part.found[0] = library.box_sum(part.a, part.box)
    part.found[1] = library.box_dot(part.a, part.b, part.box)
    part.found[2] = library.box_max(part.a, part.box)
    part.found[3] = library.vector_sum(part.flat, part.box[0], part.flat.shape[0])
    part.found[4] = library.vector_dot(part.flat, part.flat, 0, part.flat.shape[0])
    part.found[5] = library.vector_max(part.flat, 1, part.flat.shape[0])


def field(shape: tuple[int, ...], seed: int, layout: str = "C") -> NDArray[np.float64]:
    """Random numbers of both signs, in one of three layouts."""
    values = np.random.default_rng(seed).standard_normal(shape)
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "A":
        wide = np.full([2 * n for n in shape], np.nan)
        wide[::2, 1::2, ::2] = values
        return wide[::2, 1::2, ::2]
    return values


@st.composite
def boxed(draw: st.DrawFn) -> tuple[tuple[int, ...], list[list[int]]]:
    """A shape and some boxes in it; boxes may be empty."""
    shape = draw(st.tuples(*[st.integers(1, 11)] * 2, st.integers(1, 40)))
    boxes = [
        [bound for n in shape for bound in sorted(draw(st.tuples(*[st.integers(0, n)] * 2)))]
        for _ in range(draw(st.integers(0, 3)))
    ]
    return shape, boxes


Problem = tuple[tuple[int, ...], list[list[int]]]
OTHERS = st.sampled_from("FA")
"""Layouts that are tested when slow: each is compiled anew."""
FEW = settings(max_examples=12, deadline=None)
MANY = settings(max_examples=60, deadline=None)


@given(problem=boxed())
@FEW
def test_boxes_are_copied_there_and_back(problem: Problem) -> None:
    copy_boxes(problem, "C")


@pytest.mark.slow
@given(problem=boxed(), layout=OTHERS)
@MANY
def test_boxes_of_any_layout_are_copied(problem: Problem, layout: str) -> None:
    copy_boxes(problem, layout)


def copy_boxes(problem: Problem, layout: str) -> None:
    shape, boxes = problem
    source = field(shape, 1, layout)
    sizes = [(b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]) for b in boxes]
    part = state(
        source=source,
        target=np.zeros_like(source, subok=False) if layout != "A" else field(shape, 2, "A"),
        boxes=np.array(boxes, dtype=np.int64).reshape(-1, 6),
        buffers=[np.full(n + 1, np.nan) for n in sizes],
    )
    wanted = part.target.copy()
    run_both(COPIES, part)
    for (z0, z1, y0, y1, x0, x1), buffer in zip(boxes, part.buffers, strict=True):
        cells = source[z0:z1, y0:y1, x0:x1]
        wanted[z0:z1, y0:y1, x0:x1] = cells
        assert buffer[:-1].tobytes() == cells.tobytes()
        assert np.isnan(buffer[-1])
    assert part.target.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "element",
    [
        "complex128",
        pytest.param("float32", marks=pytest.mark.slow),
        pytest.param("int64", marks=pytest.mark.slow),
    ],
)
def test_any_type_of_element_is_copied(element: str) -> None:
    source = np.arange(60).reshape(3, 4, 5).astype(element)
    part = state(
        source=source,
        target=np.zeros_like(source),
        boxes=np.array([[0, 2, 1, 4, 2, 5]]),
        buffers=[np.zeros(18, dtype=element)],
    )
    run_both(COPIES, part)
    assert (part.target[0:2, 1:4, 2:5] == source[0:2, 1:4, 2:5]).all()
    assert part.target.sum() == source[0:2, 1:4, 2:5].sum()


@pytest.mark.parametrize("depth", [1, 2])
def test_faces_fill_the_ghosts_of_a_periodic_field(depth: int) -> None:
    """Each own face goes to the ghosts at the other end: what numpy's ``wrap`` gives."""
    inside = field((5, 6, 7), 3)
    whole = np.zeros([n + 2 * depth for n in inside.shape])
    cells = (slice(depth, -depth),) * 3
    whole[cells] = inside
    run_both(FACES, part := state(field=whole, depth=depth, buffer=np.zeros(depth * 6 * 7)))
    wrapped = np.pad(inside, depth, mode="wrap")
    at_edge = np.ones(whole.shape, dtype=int)
    for axis in range(3):
        along = np.zeros(whole.shape[axis], dtype=int)
        along[:depth] = along[-depth:] = 1
        at_edge += along.reshape([-1 if a == axis else 1 for a in range(3)])
    # Faces without edges and corners, which stay zero.
    assert part.field.tobytes() == np.where(at_edge <= 2, wrapped, 0.0).tobytes()


@given(problem=boxed().filter(lambda p: p[1]))
@FEW
def test_reductions(problem: Problem) -> None:
    reduce_boxes(problem, "C")


@pytest.mark.slow
@given(problem=boxed().filter(lambda p: p[1]), layout=OTHERS)
@MANY
def test_reductions_of_any_layout(problem: Problem, layout: str) -> None:
    reduce_boxes(problem, layout)


def reduce_boxes(problem: Problem, layout: str) -> None:
    shape, boxes = problem
    a, b = field(shape, 4, layout), field(shape, 5)
    part = state(a=a, b=b, box=tuple(boxes[0]), flat=b.reshape(-1), found=np.zeros(6))
    run_both(SUMS, part)
    z0, z1, y0, y1, x0, x1 = boxes[0]
    inside = np.s_[z0:z1, y0:y1, x0:x1]
    flat = b.reshape(-1)
    wanted = [
        *(a[inside].sum(), (a[inside] * b[inside]).sum(), a[inside].max(initial=-np.inf)),
        *(flat[z0:].sum(), (flat * flat).sum(), flat[1:].max(initial=-np.inf)),
    ]
    assert part.found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert part.found[2] == wanted[2]


def test_a_maximum_leaves_out_nans() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0, 2.0, np.nan, np.nan, np.nan, np.nan])
    assert library.vector_max(values, 0, 9) == 3.0
    assert library.vector_max(values, 5, 9) == -np.inf
