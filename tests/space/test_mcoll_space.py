"""The spaces of collectives: a setting is what the program is told, and the program takes it."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.config.app import load_app
from autotune.space import Setting, Space, load_space
from runner.programs.apps.mcoll.options import parse as mcoll_options
from runner.programs.apps.nbody.options import parse as nbody_options
from runner.runtimes.intranode.mcoll import MCOLL, Config
from tests.case_table import case_table
from tests.space.switches import check_defaults, expected, fits, words_of

LEFT_OUT = {"same_bits"}
"""It changes what the program does."""


def space(
    name: str = "mcoll",
    ranks: int = 8,
    cores: int = 8,
    nodes: int = 1,
    collective: str = "allgathers",
    assumed: int = 2,
) -> Space:
    facts = {"allgathers": 0, "allreduces": 0, "scatters": 0, collective: 1}
    known = {"ranks": ranks, "cores": cores, "nodes": nodes}
    return load_space(name, None, known, {**facts, "assumed_nodes": assumed})


def test_applications_have_the_space() -> None:
    nbody = load_app("nbody")
    assert nbody.space("mcoll") == "mcoll-nbody"
    assert space("mcoll-nbody").requires <= set(nbody.tunable)
    assert space().requires <= set(load_app("mcoll").tunable)


@pytest.mark.parametrize("app", ["mcoll", "nbody"])
def test_inputs_say_what_the_space_asks(app: str) -> None:
    for name in load_app(app).inputs:
        given = load_app(app).input(name)
        facts = dict(given.facts)
        assert set(facts) == {"assumed_nodes", "allgathers", "allreduces", "scatters"}
        if app == "mcoll":
            options = mcoll_options(list(given.args))
            assert facts[f"{options.operation}s"] == 1
            assert sum(facts.values()) == facts["assumed_nodes"] + 1


@case_table("name", ["mcoll", "mcoll-nbody"])
@case_table("collective", ["allgathers", "allreduces", "scatters"])
def test_drawn_settings_are_what_the_program_does(name: str, collective: str) -> None:
    rng = np.random.default_rng(1)
    made = space(name, collective=collective)
    other = 0
    for _ in range(100):
        setting = made.sample(rng)
        words = words_of(made, setting)
        if name == "mcoll":
            config = mcoll_options([*words, "--mcoll-config", "none"]).config
        else:
            options = nbody_options(words)
            config = options.config
            variant = setting.get("variant", "mpi")
            assert (options.variant, options.nodes) == (variant, 2 * (variant == "mcoll"))
            assert options.config_source in ("", "defaults", "switches")
        assert config == expected(MCOLL, setting)
        # Four ranks on each node.
        assert 2 <= config.radix_of(4) <= config.objects_of(4) + 1
        other += config != Config()
    assert other > 5


@case_table("collective", ["allgathers", "allreduces", "scatters"])
def test_defaults_are_those_of_the_library(collective: str) -> None:
    """So a setting that names the default is left out."""
    names = {switch.replace("-", "_") for switch in MCOLL.table}
    others = {name for name in names if collective[:-1] not in name}
    check_defaults(MCOLL, space(collective=collective), LEFT_OUT | others)


@case_table(
    ("text", "allowed"),
    [
        ("objects=4", True),
        ("objects=8", False),  # Four ranks on each of two assumed nodes.
        ("radix=5", True),
        ("radix=9", False),
        ("objects=2,radix=3", True),
        ("objects=2,radix=4", False),
        ("allgather=rd", True),
        ("allgather=ring,allgather_switch=1024", False),
        ("allgather_switch=65536,allgather_mpi_from=65536", False),
        ("allgather_switch=16384,allgather_mpi_from=65536", True),
        ("allgather_mpi_from=1024", False),  # The switch is at 32 KiB.
        ("allgather=bruck,overlap=off", False),
        ("overlap=off", True),
        ("allgather=library", True),
        ("allgather=library,copy=publish", False),
        ("allgather=library,objects=2", False),
        ("allgather=ring,radix=2", False),
        ("allgather=bruck,radix=2", True),
        ("chunks=binomial", False),  # Nothing is reduced.
        ("allreduce=ring", False),
        ("waiting=spin,spins=200", False),
        ("waiting=sleep,spins=200", True),
    ],
)
def test_what_fits(text: str, allowed: bool) -> None:
    assert fits(space(), text) is allowed


def test_what_depends_on_the_place() -> None:
    assert not space(assumed=3, ranks=9).is_valid(Setting.parse("allgather=rd"))
    # Of several machines the assumption means nothing.
    assert space(nodes=4, assumed=3).is_valid(Setting.parse("allgather=rd"))
    assert not space(nodes=3, ranks=9, assumed=2).is_valid(Setting.parse("allgather=rd"))
    assert not space(nodes=4).is_valid(Setting.parse("objects=4"))
    assert space(nodes=4).is_valid(Setting.parse("objects=2"))
    assert not space(cores=4).is_valid(Setting.parse("waiting=spin"))


def test_plain_mpi_has_nothing_to_set() -> None:
    setting = Setting.parse("objects=2,copy=publish")
    assert space("mcoll-nbody").canonical(setting) == Setting.parse("default")
