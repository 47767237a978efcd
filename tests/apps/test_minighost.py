"""The heat equation against numpy, its account of heat, boxes, faces; in one process."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.programs.apps.common.box import bounds_of, cut, face_of
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.minighost import stencil
from runner.programs.apps.minighost.domain import Domain, serial_domain
from runner.programs.apps.minighost.heat import UNIT, balance, rounding
from runner.programs.apps.minighost.inputs import INPUTS
from runner.programs.apps.minighost.problem import (
    CENTRE,
    DEPTH,
    NEAR,
    SPIKE,
    SPIKES,
    check_size,
    initial_field,
    most_steps,
    spikes,
)
from runner.runtimes.core.kernels import scalars
from tests.case_table import case_table
from tests.refusals import refused

sizes = st.tuples(*[st.integers(1, 11)] * 3)
ALONE: Any = SimpleNamespace(rank=0, size=1, allgather=lambda value: [value])
"""A world of one process."""


def whole(size: tuple[int, ...], variables: int = 1) -> Domain:
    domain = Domain(size, (0, 0, 0), size, variables)
    domain.reset()
    return domain


def same_bits(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return a.tobytes() == b.tobytes()


def reference(field: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The same expression in numpy, which neither fuses nor reorders; axes are the last three."""
    u = field.copy()
    inner = (slice(None), *[slice(DEPTH, -DEPTH)] * 3)

    def at(axis: int, step: int) -> NDArray[np.float64]:
        where = list(inner)
        where[axis] = slice(DEPTH + step, u.shape[axis] - DEPTH + step)
        return u[tuple(where)]

    for _ in range(steps):
        near = ((at(3, -1) + at(3, 1)) + (at(2, -1) + at(2, 1))) + (at(1, -1) + at(1, 1))
        u[inner] = CENTRE * u[inner] + NEAR * near
    return u


@given(size=sizes, variables=st.integers(1, 3), steps=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_every_bit_as_in_numpy(size: tuple[int, ...], variables: int, steps: int) -> None:
    wanted = reference(whole(size, variables).fields[0], steps)
    domain = serial_domain(size, steps, variables)
    # The whole array: the ghosts outside the grid must still be zero.
    assert same_bits(domain.fields[domain.current], wanted)


@case_table("parts", [(1, 1, 1), (3, 2, 2), (13, 7, 5), (4, 1, 3)])
def test_blocks_together_give_the_bits_and_the_heat_of_the_whole(parts: tuple[int, ...]) -> None:
    size, variables = (13, 7, 5), 3
    once, blocks = serial_domain(size, 1, variables), whole(size, variables)
    for variable in range(variables):
        for box in cut(blocks.whole, parts):
            blocks.advance(box, range(variable, variable + 1))[0]()
    blocks.current = 1
    assert same_bits(blocks.fields[1], once.fields[1])
    assert blocks.lost_heat() == pytest.approx(once.lost_heat(), rel=1e-14)


@given(size=sizes, grid=st.tuples(*[st.integers(1, 3)] * 3))
def test_walls_of_blocks_cover_the_boundary_once(
    size: tuple[int, ...], grid: tuple[int, ...]
) -> None:
    domain = Domain(size, (0, 0, 0), size, 1)
    count = np.zeros(domain.fields[0].shape[1:], dtype=int)
    for box in cut(domain.whole, grid):
        for z0, z1, y0, y1, x0, x1 in domain.walls(box):
            count[z0:z1, y0:y1, x0:x1] += 1
    z, y, x = np.indices(tuple(reversed(size)))
    wanted = sum(
        (place == 0).astype(int) + (place == n - 1)
        for place, n in zip((x, y, z), size, strict=True)
    )
    assert (count[1:-1, 1:-1, 1:-1] == wanted).all()


def test_a_domain_in_the_middle_has_no_walls() -> None:
    domain = Domain((9, 9, 9), (3, 3, 3), (6, 6, 6), 1)
    assert domain.walls(domain.whole) == []
    assert domain.box_of((4, 3, 5), (6, 6, 6)) == (3, 4, 1, 4, 2, 4)


@case_table("size", [(9, 4, 3), (1, 5, 1), (1, 1, 1), (2, 3, 17)])
def test_the_kernel_agrees_with_plain_python(size: tuple[int, ...]) -> None:
    domain = whole(size, 2)
    _, planes, rows, row = domain.fields[0].shape
    u, v = domain.fields[0].reshape(-1), np.zeros(domain.fields[0].size)
    geometry = scalars([row, row * rows, row * rows * planes, 0, 2, u.size, *domain.whole])
    walls = domain.walls(domain.whole)
    lost = np.zeros(2)
    stencil.outflow(u, geometry, scalars([len(walls), *np.ravel(walls).tolist()]), lost)
    stencil.sweep(u, v, geometry)
    domain.advance(domain.whole, range(2))[0]()
    assert same_bits(v, domain.fields[1].reshape(-1))
    assert domain.lost_heat() == lost.tolist()
    sums = domain.fields[0].sum(axis=(1, 2, 3)) - domain.fields[1].sum(axis=(1, 2, 3))
    assert sums == pytest.approx(lost, rel=1e-12)


@given(size=sizes, variable=st.integers(0, 50), data=st.data())
def test_start_values_do_not_depend_on_the_block(
    size: tuple[int, ...], variable: int, data: st.DataObject
) -> None:
    everything = initial_field(size, (0, 0, 0), size, range(variable, variable + 1))[0]
    start = tuple(data.draw(st.integers(0, n - 1)) for n in size)
    stop = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(start, size, strict=True))
    (x0, y0, z0), (x1, y1, z1) = start, stop
    several = initial_field(size, start, stop, range(variable, variable + 3))
    part = several[0].copy()
    assert same_bits(part, everything[z0:z1, y0:y1, x0:x1].copy())
    assert everything.min() > 0
    # Multiples of 1/256: sums are exact.
    assert np.array_equal(everything * 256, np.round(everything * 256))
    assert everything.sum() > SPIKES * SPIKE


def test_start_values_have_no_symmetry_and_differ_between_variables() -> None:
    field, other = initial_field((6, 6, 6), (0, 0, 0), (6, 6, 6), range(2)) % 1.0
    for axes in (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        assert not np.allclose(field, np.flip(field, axes), rtol=1e-2)
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        assert not np.allclose(field, field.transpose(order), rtol=1e-2)
    first, second = spikes((50, 50, 50), range(2))
    assert first.tolist() != second.tolist()
    assert len({tuple(cell) for cell in first.tolist()}) == SPIKES
    assert not np.allclose(field, other, rtol=1e-2)


@given(size=sizes, variables=st.integers(1, 3), steps=st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_heat_is_in_balance_within_rounding(
    size: tuple[int, ...], variables: int, steps: int
) -> None:
    put_in = whole(size, variables).heat()
    verdict = balance(ALONE, serial_domain(size, steps, variables), put_in, steps)
    assert verdict.is_right is True
    assert verdict.error <= verdict.bound == rounding(size, steps)


@case_table("variable", [0, 2])
@case_table("wrong", [2.0**-30, -(2.0**-30), math.nan])
def test_one_cell_that_is_wrong_by_little_breaks_the_balance(variable: int, wrong: float) -> None:
    put_in = whole((11, 9, 7), 3).heat()
    domain = serial_domain((11, 9, 7), 10, 3)
    domain.interior[variable, 3, 4, 5] += wrong
    verdict = balance(ALONE, domain, put_in, 10)
    assert verdict.is_right is False
    assert f" variable {variable}: " in verdict.message


def test_heat_that_is_not_counted_breaks_the_balance() -> None:
    put_in = whole((5, 4, 3)).heat()
    domain = whole((5, 4, 3))
    domain.walls = lambda box: []  # type: ignore[method-assign]
    domain.advance(domain.whole, range(1))[0]()
    domain.current = 1
    assert balance(ALONE, domain, put_in, 1).is_right is False


def test_the_bound_is_about_ten_roundings_a_step() -> None:
    assert rounding((10, 10, 10), 1000) == pytest.approx(10038 * UNIT)
    assert np.finfo(float).eps / 2 == UNIT


def test_a_reset_starts_anew() -> None:
    domain = serial_domain((5, 4, 3), 3, 2)
    assert min(domain.lost_heat()) > 0
    domain.reset()
    assert domain.lost_heat() == [0.0, 0.0]
    assert same_bits(domain.fields[0], whole((5, 4, 3), 2).fields[0])
    assert not domain.fields[1].any()


def neighbours(left: Domain, right: Domain, variables: range, field: int) -> None:
    """What two neighbours along x do with messages: pack, carry and unpack, on one face each."""
    a = left.faces(left.whole, [(0, 1, 1)], variables)
    b = right.faces(right.whole, [(0, 0, 0)], variables)
    for one, other in ((a, b), (b, a)):
        one.pack[field]()
        assert [tag for _, _, tag in one.sends] == [tag for _, _, tag in other.receives]
        other.receives[0][0][:] = one.sends[0][0]
        other.unpack[field]()


def test_a_face_carries_its_variables_and_no_others() -> None:
    size = (9, 5, 4)
    left, right = Domain(size, (0, 0, 0), (4, 5, 4), 4), Domain(size, (4, 0, 0), size, 4)
    for domain in (left, right):
        domain.reset()
    neighbours(left, right, range(1, 3), 0)
    everything = whole(size, 4).interior
    _, _, _, _, x0, x1 = face_of(left.whole, 0, 1, True, DEPTH)
    ghosts = left.fields[0][:, 1:-1, 1:-1, x0:x1]
    assert same_bits(ghosts[1:3].copy(), everything[1:3, :, :, 4:5].copy())
    assert not ghosts[0].any()
    assert not ghosts[3].any()
    faces = left.faces(left.whole, [(0, 1, 1)], range(1, 3), tag=6)
    assert faces.bytes == 8 * 2 * 5 * 4
    assert [tag for _, _, tag in faces.sends + faces.receives] == [7, 6]


def test_blocks_with_messages_give_the_bits_of_the_whole() -> None:
    """As a form of blocks would do it: each face of each block at the cut is a message."""
    size, variables = (8, 6, 4), 2
    left, right = Domain(size, (0, 0, 0), (5, 6, 4), 2), Domain(size, (5, 0, 0), size, 2)
    boxes = {d: cut(d.whole, (1, 3, 2)) for d in (left, right)}
    faces = {}
    calls = []
    for domain, side in ((left, 1), (right, 0)):
        domain.reset()
        faces[domain] = [
            domain.faces(box, [(0, side, 0)], range(variables)) for box in boxes[domain]
        ]
        calls += [domain.advance(box, range(variables)) for box in boxes[domain]]
    for step in range(4):
        for one, other in ((left, right), (right, left)):
            for mine, theirs in zip(faces[one], faces[other], strict=True):
                mine.pack[step % 2]()
                theirs.receives[0][0][:] = mine.sends[0][0]
                theirs.unpack[step % 2]()
        for call in calls:
            call[step % 2]()
    serial = serial_domain(size, 4, variables)
    assert same_bits(left.interior.copy(), serial.interior[..., :5].copy())
    assert same_bits(right.interior.copy(), serial.interior[..., 5:].copy())
    lost = [a + b for a, b in zip(left.lost_heat(), right.lost_heat(), strict=True)]
    assert lost == pytest.approx(serial.lost_heat(), rel=1e-14)


def test_weights_move_heat_and_make_none() -> None:
    assert CENTRE + 6 * NEAR == 1.0
    assert 1 - 12 * NEAR == -0.5
    assert bounds_of((0, 1, 2, 3, 4, 5)) == [(4, 5), (2, 3), (0, 1)]


def test_runs_that_would_underflow_are_refused() -> None:
    limit = most_steps((4, 4, 4))
    assert 1e-150 < serial_domain((4, 4, 4), limit, 1).interior.min() < 1e-130
    with refused(AppUsageError, "app_option.range"):
        check_size((4, 4, 4), limit + 1)
    for chosen in INPUTS.values():
        check_size(chosen.size, chosen.steps)
