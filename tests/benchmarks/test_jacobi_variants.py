"""The cases of the Jacobi benchmark use all cores; its figure is well-formed and in scale."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from benchmarks.jacobi_cases import CURVES, SIDE_BY_SIDE, cases
from benchmarks.svg_curve import HEIGHT, WIDTH, curve, tick_step
from runner.apps.jacobi3d.options import VARIANTS, parse


@pytest.mark.parametrize(("cores", "workers"), [(2, 2), (2, 1), (8, 4)])
def test_cases_use_all_cores_and_are_understood(cores: int, workers: int) -> None:
    every = cases(cores, workers, (1, 2, 16))
    assert every[0].variant == "mpi"
    assert {case.variant for case in every} == set(VARIANTS)
    for variant in CURVES:
        assert [c.factor for c in every if c.variant == variant] == [1, 2, SIDE_BY_SIDE, 16]
    for case in every:
        assert case.processes * case.workers == cores
        config = parse(list(case.words)).config
        assert config.workers == case.workers
        assert config.ranks_per_process == case.workers * case.factor


def test_figure() -> None:
    lines = {
        "over": {1: (1.0, 0.9, 1.1), 4: (1.5, 1.4, 1.8)},
        "mate & more": {1: (0.8, 0.7, 0.9), 4: (0.9, 0.85, 0.95)},
    }
    root = ElementTree.fromstring(curve(lines, "title <1>", "x", "y"))
    name = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in root.iter(f"{name}text")]
    assert {"title <1>", "over", "mate & more", "1", "4"} <= set(words)
    over, mate = (
        [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
        for line in root.iter(f"{name}polyline")
    )
    assert [x for x, _ in over] == [x for x, _ in mate]
    # Up is more, in proportion.
    assert (over[0][1] - over[1][1]) / (mate[0][1] - mate[1][1]) == pytest.approx(5, rel=0.02)
    assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in [*over, *mate])


@pytest.mark.parametrize("span", [1e-9, 0.013, 0.4, 1.0, 7.9, 80.0, 4321.0])
def test_steps_of_the_axis(span: float) -> None:
    step = tick_step(span)
    assert span / step <= 8
    assert step / 10 ** math.floor(math.log10(step) + 1e-9) == pytest.approx(
        min((1, 2, 5), key=lambda f: abs(step / 10 ** math.floor(math.log10(step) + 1e-9) - f))
    )
