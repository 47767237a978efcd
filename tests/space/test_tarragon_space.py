"""The spaces of graphs of tasks: layouts use all cores, and what cannot act is not allowed."""

from __future__ import annotations

import numpy as np

from autotune.config.app import load_app
from autotune.space import Setting, Space, load_space
from tests.case_table import case_table

FACTS = {"ranks": 4, "cores": 4, "nodes": 1}
CUBE = {"cells_x": 64, "cells_y": 64, "cells_z": 64}
TOLD = {"tarragon": CUBE, "tarragon-minighost": CUBE, "tarragon-nw": {"length": 8192}}
APPS = {
    "tarragon": "jacobi3d",
    "tarragon-minighost": "minighost",
    "tarragon-nw": "needleman-wunsch",
    "tarragon-lu": "sparse-lu",
    "tarragon-ring": "ring",
}


def space(name: str = "tarragon", **facts: int) -> Space:
    return load_space(name, None, {**FACTS, **facts}, TOLD.get(name, {}))


@case_table("name", APPS)
def test_an_application_has_its_own_form_of_the_space(name: str) -> None:
    app = load_app(APPS[name])
    assert app.space("openmpi+tarragon") in (f"openmpi+{name}", "openmpi+tarragon")
    assert space(name).requires <= set(app.tunable)


@case_table("name", APPS)
def test_drawn_settings_become_words_of_the_program(name: str) -> None:
    rng = np.random.default_rng(1)
    made = space(name)
    for _ in range(50):
        words = made.launched(made.sample(rng)).get("arg", {})
        assert all("{" not in word for word in words.values())
        for name in ("--task-queue", "--aggregation-size", "--thread-level"):
            assert all(len(w.split()) == 2 for w in words.values() if w.startswith(name))


@case_table(
    ("text", "allowed"),
    [
        ("variant=tarragon,threads=service,workers=2,task_queue=stealing", True),
        ("variant=tarragon,threads=service,workers=2,task_queue=stealing,priority=edges", False),
        ("variant=tarragon,threads=service,workers=2,task_queue=private,priority=edges", True),
        ("variant=tarragon,threads=service,task_queue=private", False),  # One worker.
        ("variant=tarragon,threads=workers,workers=2,task_queue=private", True),
        ("variant=tarragon,threads=workers", False),  # One worker is a single thread.
        ("variant=tarragon,threads=service,service=dedicated", False),  # Four cores, all used.
        ("variant=tarragon,odf=4,local_x=1,local_y=4", True),
        ("variant=tarragon,odf=4,local_x=1,local_y=3", False),
    ],
)
def test_what_fits(text: str, allowed: bool) -> None:
    assert space().is_valid(Setting.parse(text)) is allowed


def test_a_thread_with_a_core_of_its_own_needs_one() -> None:
    setting = Setting.parse("variant=tarragon,threads=service,service=dedicated,workers=2")
    assert not space(ranks=4, cores=4).is_valid(setting)
    assert space(ranks=4, cores=6).is_valid(setting)


def test_affinity_acts_only_with_a_queue_for_each_worker() -> None:
    setting = Setting.parse("variant=tarragon,threads=service,workers=2,task_affinity=block")
    made = space()
    assert made.canonical(setting) == setting.without("task_affinity")


def test_the_workers_of_a_process_are_counted_in_the_processes() -> None:
    made = space()
    words = made.launched(Setting.parse("variant=tarragon,threads=service,workers=2,odf=2"))
    assert words["arg"]["--workers {workers}"] == "--workers 2"
    layout = "--ranks-per-process {ranks_per_process} --local-grid {local_x}x{local_y}x{local_z}"
    assert words["arg"][layout] == "--ranks-per-process 4 --local-grid 1x1x4"


def test_blocks_of_an_alignment_leave_work_for_everyone() -> None:
    made = space("tarragon-nw")
    assert made.is_valid(Setting.parse("variant=block,rows=2048,columns=2048"))
    assert not space("tarragon-nw", ranks=8, cores=8).is_valid(
        Setting.parse("variant=block,rows=2048,columns=2048")
    )
