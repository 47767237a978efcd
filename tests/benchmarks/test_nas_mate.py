"""The contest of flat MPI and MATE on NAS kernels: both have settings to try."""

from __future__ import annotations

import pytest

from autotune.config.app import load_app
from autotune.space import DEFAULT, load_space
from benchmarks.harness.contest import runs_of
from benchmarks.harness.figures import Speedup
from benchmarks.models import EAGER, drawn
from benchmarks.nas_mate import (
    CLASSES,
    KERNELS,
    KNOBS,
    NO_LAYOUT,
    Bound,
    cells_of,
    flat_settings,
    layout_space,
    parser,
    shares,
)
from tests.space.libraries import NEW


@pytest.mark.parametrize("nodes", [2, 4, 8])
@pytest.mark.parametrize("kernel", KERNELS)
def test_both_forms_get_as_many_settings(kernel: str, nodes: int) -> None:
    """Also where nodes share the cores of the machine."""
    app = load_app(f"nas-{kernel}")
    facts = {"ranks": nodes, "cores": 2, "nodes": nodes}
    own = layout_space(load_space(app.space("mate"), None, facts, app.input(CLASSES[kernel]).facts))
    space = load_space("openmpi+openmpi-tcp", NEW, facts)
    flat = flat_settings(space, KNOBS["testbed"], 12, seed=1, given=(EAGER,))
    layouts = drawn(own, "mate", 12, 1, (EAGER, DEFAULT))
    assert flat[:2] == [DEFAULT, EAGER]
    assert space.is_valid(EAGER)
    assert len(set(flat)) == len(set(layouts)) == 12
    assert all(set(setting) <= set(KNOBS["testbed"]) for setting in flat)
    assert all(setting["variant"] == "mate" for setting in layouts)
    assert not any(set(setting) & set(NO_LAYOUT) for setting in layouts)
    assert not any("workers" in setting for setting in layouts)


BOUND = Bound.of(
    {
        "flat_s": "2.0",
        "bounds": [
            {"factor": 1, "work_s": 0.9, "chain_s": 2.0, "wire_s": 0.1, "forecast_s": 2.0},
            {"factor": 2, "work_s": 1.0, "chain_s": 0.8, "wire_s": 0.1, "forecast_s": 1.4},
        ],
    }
)


def test_the_delay_line_counts_as_computation_of_its_node() -> None:
    assert BOUND.gain() == pytest.approx(2.0)
    assert BOUND.gain(0.25) == pytest.approx(2.0 / 1.25)


def test_the_goal_is_a_share_of_the_limit_that_counts_the_line() -> None:
    given = parser().parse_args(["--keep", "x", "--kernels", "cg", "--latency-ms", "0", "1"])
    given.bounds = {("cg", "A", "1 ms"): BOUND}
    (near, _), (far, cell) = cells_of(given).values()
    launches = 1 + 2 * runs_of(given.tries) + 3 * given.blocks
    assert runs_of(12) == 12 + 3 * 3
    assert cell.expected_s == pytest.approx(launches * (2.0 + 1.5))
    gain = Speedup(1.5, 1.4, 1.6, True)
    found = shares(far, gain, 0.25, given.bounds)
    assert found == {
        "limit": "2.000", "part": "50%", "limit, line": "1.600", "part, line": "83%",
        "of forecast": "117%", "goal": "met",
    }  # fmt: skip
    assert shares(far, gain, 0.0, given.bounds)["goal"] == "missed"
    assert shares(far, gain, 0.0, {})["goal"] == "-"
    assert shares(near, Speedup(1.0, 0.96, 1.1, True), 0.0, {})["goal"] == "missed"
    assert shares(near, Speedup(1.0, 0.98, 1.1, True), 0.0, {})["goal"] == "met"
