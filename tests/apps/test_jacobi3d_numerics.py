"""The stencil against numpy, its stability, the residuals, blocks and boxes; all in one process."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import load_app
from runner.programs.apps.common.box import box_cells
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.faces import copier
from runner.programs.apps.common.grid import show_shape, split
from runner.programs.apps.jacobi3d.block import Block, serial_block
from runner.programs.apps.jacobi3d.faces import face_of
from runner.programs.apps.jacobi3d.inputs import INPUTS, stored_residual
from runner.programs.apps.jacobi3d.options import parse
from runner.programs.apps.jacobi3d.problem import (
    DEPTH,
    WEIGHTS,
    check_size,
    initial_field,
    most_iterations,
)
from runner.programs.apps.jacobi3d.residuals import FEWER, serial_residual
from runner.programs.apps.jacobi3d.verify import judge_residual, residual
from tests.case_table import case_table
from tests.refusals import refusal, refused

sizes = st.tuples(*[st.integers(1, 13)] * 3)


def reference(field: NDArray[np.float64], iterations: int) -> NDArray[np.float64]:
    """The same expression in numpy, which neither fuses nor reorders."""
    c0, c1, c2 = WEIGHTS
    u = field.copy()
    inner = tuple(slice(DEPTH, n - DEPTH) for n in u.shape)

    def at(axis: int, step: int) -> NDArray[np.float64]:
        where = list(inner)
        where[axis] = slice(DEPTH + step, u.shape[axis] - DEPTH + step)
        return u[tuple(where)]

    for _ in range(iterations):
        near, far = (
            ((at(2, -d) + at(2, d)) + (at(1, -d) + at(1, d))) + (at(0, -d) + at(0, d))
            for d in (1, 2)
        )
        u[inner] = (c0 * u[inner] + c1 * near) + c2 * far
    return u


def same_bits(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return a.tobytes() == b.tobytes()


@given(size=sizes, cache_block=st.integers(1, 16), iterations=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_every_bit_as_in_numpy(size: tuple[int, ...], cache_block: int, iterations: int) -> None:
    block = Block(size, (0, 0, 0), size, cache_block)
    block.reset()
    wanted = reference(block.fields[0], iterations)
    for _ in range(iterations):
        block.step()
    # The whole array: the ghosts outside the grid must still be zero.
    assert same_bits(block.fields[block.current], wanted)


def test_boxes_together_give_the_bits_of_the_whole() -> None:
    size = (19, 11, 7)
    block = Block(size, (0, 0, 0), size, 64)
    block.reset()
    wanted = reference(block.fields[0], 1)
    for parts in ((1, 1, 1), (3, 2, 2), (19, 11, 7), (5, 1, 3)):
        block.fields[1].fill(0.0)
        for i in range(parts[0]):
            for j in range(parts[1]):
                for k in range(parts[2]):
                    ranges = [
                        split(n, p, c) for n, p, c in zip(size, parts, (i, j, k), strict=True)
                    ]
                    (x0, x1), (y0, y1), (z0, z1) = [(a + DEPTH, b + DEPTH) for a, b in ranges]
                    block.stencil((z0, z1, y0, y1, x0, x1))[0]()
        assert same_bits(block.fields[1], wanted), parts


@given(size=sizes, data=st.data())
def test_start_values_do_not_depend_on_the_block(
    size: tuple[int, ...], data: st.DataObject
) -> None:
    whole = initial_field(size, (0, 0, 0), size)
    start = tuple(data.draw(st.integers(0, n - 1)) for n in size)
    stop = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(start, size, strict=True))
    part = initial_field(size, start, stop)
    (x0, y0, z0), (x1, y1, z1) = start, stop
    around = 2 * DEPTH
    assert same_bits(part, whole[z0 : z1 + around, y0 : y1 + around, x0 : x1 + around])
    inside = whole[DEPTH:-DEPTH, DEPTH:-DEPTH, DEPTH:-DEPTH]
    assert np.all(inside > 0)
    assert np.count_nonzero(whole) == inside.size


def test_start_values_have_no_mirror_symmetry() -> None:
    field = initial_field((6, 6, 6), (0, 0, 0), (6, 6, 6))
    for axes in (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        assert not np.allclose(field, np.flip(field, axes), rtol=1e-3)
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        assert not np.allclose(field, field.transpose(order), rtol=1e-3)


def test_residual_falls_in_every_iteration_even_for_the_shortest_waves() -> None:
    size = (9, 10, 11)
    block = Block(size, (0, 0, 0), size, 64)
    z, y, x = np.indices(block.interior.shape)
    block.interior[...] = np.where((x + y + z) % 2, 1.0, -1.0)
    before = block.square_sum()
    for _ in range(200):
        block.step()
        after = block.square_sum()
        assert after < before
        before = after


def test_amplification_is_below_one_for_all_waves() -> None:
    angle = np.linspace(0, np.pi, 41)[1:]
    c0, c1, c2 = WEIGHTS
    one_axis = 2 * c1 * np.cos(angle) + 2 * c2 * np.cos(2 * angle)
    factors = c0 + one_axis[:, None, None] + one_axis[:, None] + one_axis
    assert np.abs(factors).max() < 1
    assert factors.min() == pytest.approx(1 - 0.8 * 32 / 15)


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_stored_residuals_are_those_of_a_serial_run(name: str) -> None:
    assert stored_residual(INPUTS[name].size, INPUTS[name].iterations) == serial_residual(name)


def test_cheap_forms_are_verified() -> None:
    declared = {name: form.args for name, form in load_app("jacobi3d").fidelity.items()}
    assert declared == {name: ("--iterations", f"{few}") for name, few in FEWER.items()}
    stored = stored_residual(INPUTS["default"].size, FEWER["default"])
    assert stored == serial_residual("default", FEWER["default"])
    assert stored_residual(INPUTS["halo"].size, FEWER["halo"]) is not None


def test_every_input_has_a_residual_and_does_not_vanish() -> None:
    for chosen in INPUTS.values():
        check_size(chosen.size, chosen.iterations)
        value = stored_residual(chosen.size, chosen.iterations)
        assert value is not None
        assert value > 1e-100


def test_runs_that_would_underflow_are_refused() -> None:
    limit = most_iterations((8, 8, 8))
    block = serial_block((8, 8, 8), limit)
    assert block.square_sum() > 1e-300
    with refused(AppUsageError, "app_option.range"):
        check_size((8, 8, 8), limit + 1)


def test_residual_is_the_root_mean_square() -> None:
    block = serial_block((5, 6, 7), 3)
    assert residual(block.square_sum(), block.size) == pytest.approx(
        float(np.sqrt(np.mean(block.interior**2))), rel=1e-14
    )


@case_table(
    ("value", "expected", "verified"),
    [
        (0.5, 0.5, True),
        (0.5 * (1 + 1e-14), 0.5, True),
        (0.5 * (1 + 1e-10), 0.5, False),
        (0.4, 0.5, False),
        (0.5, None, None),
        (1.5, None, False),
        (float("nan"), 0.5, False),
        (float("inf"), None, False),
    ],
)
def test_judgement(value: float, expected: float | None, verified: bool | None) -> None:
    verdict = judge_residual(value, 1.0, expected)
    assert verdict.is_verified is verified
    assert repr(value) in verdict.message
    if verified is False and value < 1.0:
        assert repr(expected) in verdict.message


@given(sizes.filter(lambda s: min(s) >= DEPTH), st.integers(0, 2), st.integers(0, 1))
def test_faces_leave_and_arrive_at_matching_places(
    cells: tuple[int, ...], axis: int, side: int
) -> None:
    """The ghosts behind a face are the own cells of the opposite face, one block further."""
    x, y, z = cells
    whole = (2, z + 2, 2, y + 2, 2, x + 2)
    own = face_of(whole, axis, 1 - side, ghost=False)
    ghost = face_of(whole, axis, side, ghost=True)
    at = 2 * (2 - axis)
    shift = cells[axis] if side == 0 else -cells[axis]
    moved = list(ghost)
    moved[at] += shift
    moved[at + 1] += shift
    assert tuple(moved) == own
    assert box_cells(own) == 2 * np.prod(cells) // cells[axis]


def test_pack_and_unpack_are_inverse() -> None:
    block = Block((5, 4, 3), (0, 0, 0), (5, 4, 3), 64)
    block.reset()
    boxes = [face_of(block.whole, axis, side, ghost=False) for axis in range(3) for side in (0, 1)]
    places = np.cumsum([0] + [box_cells(b) for b in boxes]).tolist()
    buffer = np.full(places[-1] + 1, np.nan)
    copier("pack", block.fields, buffer, zip(places, boxes, strict=False))[0]()
    for place, (z0, z1, y0, y1, x0, x1) in zip(places, boxes, strict=False):
        wanted = block.fields[0][z0:z1, y0:y1, x0:x1].ravel()
        assert same_bits(buffer[place : place + wanted.size], wanted)
    assert np.isnan(buffer[-1])
    copier("unpack", block.fields, buffer, zip(places, boxes, strict=False))[1]()
    filled = np.zeros(block.fields[1].shape, dtype=bool)
    for z0, z1, y0, y1, x0, x1 in boxes:
        filled[z0:z1, y0:y1, x0:x1] = True
    assert same_bits(block.fields[1], np.where(filled, block.fields[0], 0.0))


def test_options_of_a_named_input() -> None:
    options = parse(["--input", "tiny", "--grid", "1X2x1", "--iterations", "7"])
    assert (options.size, options.iterations, options.grid) == ((16, 16, 16), 7, (1, 2, 1))
    assert parse([]).input == "default"
    assert parse(["--size", "9"]).size == (9, 9, 9)
    assert parse(["--size", "9x8x7"]).input is None


def test_wrong_options_are_named(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("--input no", "--input tiny --size 4", "--size 4x4", "--grid 2", "--iterations 0"),
        *("--block x", "--variant matte", "--repetition 2", "7"),
    ]
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot


def test_configuration_names_the_inputs_of_the_program() -> None:
    path = Path(__file__).parents[2] / "configs" / "apps" / "jacobi3d.toml"
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    own = {name: one["args"] for name, one in config["inputs"].items()}
    assert [name for name, words in own.items() if not words] == list(INPUTS)
    padded = {n: parse(["--input", n, *words]) for n, words in own.items() if words}
    assert {n: (p.input, p.padding) for n, p in padded.items()} == {
        "face4": ("face", 4),
        "face16": ("face", 16),
    }
    assert config["default_input"] == parse([]).input
    for name, chosen in INPUTS.items():
        words = config["inputs"][name]["description"]
        assert f"{show_shape(chosen.size)} cells, {chosen.iterations} iterations" in words
