"""The space of progress: a setting is what the program is told, and the program takes it."""

from __future__ import annotations

import numpy as np

from autotune.config.app import load_app
from autotune.space import Setting, Space, load_space
from runner.programs.apps.daps.options import parse
from runner.runtimes.intranode.daps import DAPS, Config
from tests.case_table import case_table
from tests.space.switches import check_defaults, expected, fits, words_of


def space(ranks: int = 8, cores: int = 8, nodes: int = 2) -> Space:
    return load_space("daps", None, {"ranks": ranks, "cores": cores, "nodes": nodes}, {})


def test_the_application_has_the_space() -> None:
    assert space().requires <= set(load_app("daps").tunable)


def test_drawn_settings_are_what_the_program_does() -> None:
    rng = np.random.default_rng(1)
    made, ways = space(), set()
    for _ in range(60):
        setting = made.sample(rng)
        words = words_of(made, setting)
        (config,) = parse([*words, "--daps-config", "none"], 8).modes.values()
        assert config == expected(DAPS, setting)
        ways.add(config.progress)
    assert ways == {"none", "thread", "ghosts", "dynamic"}


def test_defaults_are_those_of_the_library() -> None:
    """So a setting that names the default is left out."""
    ghosts = Config(progress="ghosts").ghost_count
    check_defaults(DAPS, space(), ("steal_seed",), ghosts=ghosts)


@case_table(
    ("text", "allowed"),
    [
        ("progress=none", True),
        ("progress=ghosts,ghosts=2", True),
        ("progress=ghosts,ghosts=4", False),  # Four ranks on each node.
        ("ghosts=2", False),
        ("progress=thread,thread_place=dedicated", True),
        ("thread_place=dedicated", False),
        ("progress=thread,order=shm-first", False),
        ("progress=none,poll_gap_us=4", False),
        ("filter=off,order=shm-first,poll_gap_us=64", True),
        ("waiting=spin,spins=5", False),
        ("waiting=spin", True),
    ],
)
def test_what_fits(text: str, allowed: bool) -> None:
    assert fits(space(), text) is allowed


def test_too_few_cores_or_ranks() -> None:
    crowded = space(ranks=8, cores=4)
    assert crowded.is_valid(Setting.parse("waiting=spin"))
    assert not crowded.is_valid(Setting.parse("progress=thread,waiting=spin"))
    assert not crowded.is_valid(Setting.parse("progress=thread,thread_place=dedicated"))
    assert not space(ranks=8, cores=2).is_valid(Setting.parse("waiting=spin"))
    # On one node the program assumes two.
    assert not space(ranks=2, nodes=1).is_valid(Setting.parse("progress=ghosts"))
    assert space(ranks=4, nodes=1).is_valid(Setting.parse("progress=ghosts"))
