"""FT without MPI: transforms against numpy, transposition, layouts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.programs.nas.ft_layout import Layout, Shape, rank_grid
from runner.programs.nas.ft_transform import Transforms, frequencies
from runner.runtimes.core.kernels import load, scalars

POWERS = st.integers(2, 6).map(lambda k: 2**k)


def noise(seed: int, points: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(points) + 1j * rng.standard_normal(points)


@settings(max_examples=40, deadline=None)
@given(
    n=POWERS,
    others=st.tuples(st.sampled_from([16, 32]), st.sampled_from([1, 2, 3, 17, 20])),
    axis=st.integers(0, 2),
    direction=st.sampled_from([1, -1]),
    in_place=st.booleans(),
    seed=st.integers(0, 99),
)
def test_transforms_are_those_of_numpy(
    n: int, others: tuple[int, int], axis: int, direction: int, in_place: bool, seed: int
) -> None:
    shape: Shape = ((n, others[1], others[0]), (others[0], n, others[1]), (*others, n))[axis]
    source = noise(seed, n * others[0] * others[1])
    given_values = source.copy().reshape(shape[::-1])
    target = source if in_place else np.zeros_like(source)
    Transforms({n, 64}).along(axis, direction, shape, source, target)()
    # numpy's inverse has exp(+i...) and a factor 1 / n.
    expected = (
        np.fft.ifft(given_values, axis=2 - axis) * n
        if direction > 0
        else np.fft.fft(given_values, axis=2 - axis)
    )
    np.testing.assert_allclose(target.reshape(shape[::-1]), expected, rtol=0, atol=1e-11)


@given(POWERS)
def test_places_of_frequencies_are_a_permutation(n: int) -> None:
    assert sorted(frequencies(n)) == list(range(n))


@settings(max_examples=30, deadline=None)
@given(st.tuples(*[st.integers(1, 40)] * 3))
def test_transposition_swaps_the_outer_axes(shape: Shape) -> None:
    source = noise(1, shape[0] * shape[1] * shape[2])
    target = np.zeros_like(source)
    load("runner.programs.nas.ft_kernels").bind(
        "transpose", source.view(float), target.view(float), scalars(list(shape))
    )()
    expected = source.reshape(shape[::-1]).transpose(2, 1, 0)
    assert np.array_equal(target.reshape(expected.shape), expected)


def test_layouts_are_those_of_the_original() -> None:
    assert rank_grid(1, 64) == (1, 1)
    assert rank_grid(64, 64) == (1, 64)
    assert rank_grid(256, 64) == (64, 4)
    slabs = Layout((128, 64, 32), (1, 4), rank=3)
    assert slabs.shapes == [(128, 64, 8), (128, 64, 8), (32, 128, 16)]
    assert slabs.first_start == (0, 0, 24)
    assert slabs.third_start == (0, 48, 0)
    pencils = Layout((128, 64, 32), (2, 4), rank=5)
    assert pencils.shapes == [(128, 32, 8), (64, 64, 8), (32, 64, 16)]
    assert pencils.first_start == (0, 32, 8)
    assert pencils.third_start == (64, 16, 0)
