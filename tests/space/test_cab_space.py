"""The spaces of stolen chunks: a setting is what the program is told, and the program takes it."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.config.app import load_app
from autotune.space import Setting, Space, load_space
from runner.programs.apps.cab.options import parse as cab_options
from runner.programs.apps.minighost.options import parse as minighost_options
from runner.runtimes.intranode import CAB, Config
from tests.case_table import case_table
from tests.space.switches import check_defaults, expected, fits, words_of


def space(name: str = "cab", ranks: int = 4, cores: int = 4) -> Space:
    return load_space(name, None, {"ranks": ranks, "cores": cores, "nodes": 1}, {})


def test_applications_have_the_space() -> None:
    minighost = load_app("minighost")
    assert minighost.space("cab") == "cab-minighost"
    assert space("cab-minighost").requires <= set(minighost.tunable)
    assert space().requires <= set(load_app("cab").tunable)


@pytest.mark.parametrize("name", ["cab", "cab-minighost"])
def test_drawn_settings_are_what_the_program_does(name: str) -> None:
    rng = np.random.default_rng(1)
    made = space(name)
    chunked = 0
    for _ in range(60):
        setting = made.sample(rng)
        words = words_of(made, setting)
        if name == "cab":
            config = cab_options([*words, "--steal-config", "none"], 4).config
        else:
            options = minighost_options(words)
            config = options.intranode
            assert options.variant == setting.get("variant", "mpi")
            assert options.config_source in ("", "defaults", "switches")
        assert config == expected(CAB, setting)
        chunked += config != Config()
    assert chunked > 10


def test_defaults_are_those_of_the_library() -> None:
    """So a setting that names the default is left out."""
    check_defaults(CAB, space(), ("domains", "steal_seed"))


@case_table(
    ("text", "allowed"),
    [
        ("chunk_small=32768", True),
        ("chunk_small=65536", False),  # Above chunk_medium.
        ("chunk_small=65536,chunk_medium=98304,chunk_large=98304", True),
        ("chunk_large=16384", False),
        ("medium_from=262144,large_from=131072", False),
        ("medium_from=262144,large_from=262144", True),
        ("steal=off,bundle=off", True),
        ("steal=off,stealers=1", False),
        ("stealers=4", False),  # Four ranks, so three others.
        ("stealers=2", True),
        ("saturation=8", False),  # Four cores.
        ("saturation=2,steal_strategy=mixed", False),
        ("waiting=spin,spins=20", False),
    ],
)
def test_what_fits(text: str, allowed: bool) -> None:
    assert fits(space(), text) is allowed


def test_what_cannot_act_is_left_out() -> None:
    setting = Setting.parse("chunk_large=131072,bundle=off,messages=variable")
    assert space("cab-minighost").canonical(setting) == Setting.parse("messages=variable")
    crowded = space(ranks=8)
    assert not crowded.is_valid(Setting.parse("waiting=spin"))
