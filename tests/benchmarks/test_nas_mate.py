"""The contest of flat MPI and MATE on NAS kernels: both have settings to try."""

from __future__ import annotations

import pytest

from autotune.config.app import load_app
from autotune.space import DEFAULT, Setting, load_space
from benchmarks.models import drawn
from benchmarks.nas_mate import CLASSES, KERNELS, KNOBS, NO_LAYOUT, flat_settings, layout_space
from tests.space.libraries import NEW


@pytest.mark.parametrize("kernel", KERNELS)
def test_both_forms_get_as_many_settings(kernel: str) -> None:
    app = load_app(f"nas-{kernel}")
    facts = {"ranks": 2, "cores": 1, "nodes": 2}
    own = layout_space(load_space(app.space("mate"), None, facts, app.input(CLASSES[kernel]).facts))
    flat = flat_settings(
        load_space("openmpi+openmpi-tcp", NEW, facts), KNOBS["testbed"], 12, seed=1
    )
    layouts = drawn(own, "mate", 12, 1, Setting({"btl_tcp_eager_limit": 262144}))
    assert flat[0] == DEFAULT
    assert len(set(flat)) == len(set(layouts)) == 12
    assert all(set(setting) <= set(KNOBS["testbed"]) for setting in flat)
    assert all(setting["variant"] == "mate" for setting in layouts)
    assert not any(set(setting) & set(NO_LAYOUT) for setting in layouts)
