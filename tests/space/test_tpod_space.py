"""The spaces of blocks as tasks: edges divide the grid, and what cannot act is not allowed."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.config.app import load_app
from autotune.space import Setting, Space, load_space
from tests.case_table import case_table
from tests.space.switches import fits

CELLS = {"cells_x": 96, "cells_y": 96, "cells_z": 192}


def space(name: str = "tpod-minighost", ranks: int = 4, cores: int = 4) -> Space:
    return load_space(name, None, {"ranks": ranks, "cores": cores, "nodes": 1}, CELLS)


@pytest.mark.parametrize("app", ["minighost", "jacobi3d"])
def test_an_application_has_its_own_form_of_the_space(app: str) -> None:
    found = load_app(app)
    assert found.space("openmpi+tpod") == f"openmpi+tpod-{app}"
    assert space(f"tpod-{app}").requires <= set(found.tunable)


@pytest.mark.parametrize("name", ["tpod-minighost", "tpod-jacobi3d"])
def test_drawn_settings_become_words_of_the_program(name: str) -> None:
    rng = np.random.default_rng(1)
    made = space(name)
    for _ in range(50):
        setting = made.sample(rng)
        launched = made.launched(setting)
        assert set(launched) <= {"arg", "resource"}
        words = launched.get("arg", {})
        assert all("{" not in word for word in words.values())
        given = " ".join(words.values())
        assert ("--block-edge" in given) is (setting.get("variant") == "tpod")


@case_table(
    ("text", "allowed"),
    [
        ("variant=tpod,edge_x=16,edge_y=24,edge_z=64", True),
        ("variant=tpod,edge_x=64", False),  # 96 cells.
        ("variant=tpod,edge_z=8", False),  # 24 blocks along z.
        ("variant=tpod,edge_z=16", True),
        ("variant=tpod,workers=2,task_queue=stealing", True),
        ("variant=tpod,task_queue=stealing", False),  # One worker.
        ("variant=tpod,workers=3", False),
        ("variant=threads,workers=2", True),
        ("variant=overlap,order=SIR,prepost=1", True),
        ("variant=overlap,order=SR", False),  # Sends and receives take turns.
    ],
)
def test_what_fits(text: str, allowed: bool) -> None:
    assert fits(space(), text) is allowed


def test_receives_are_posted_early_only_where_they_do_not_block() -> None:
    made = space()
    setting = Setting.parse("variant=tpod,order=SR,prepost=1")
    assert made.canonical(setting) == setting.without("prepost")
