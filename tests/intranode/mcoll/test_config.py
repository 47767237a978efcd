"""The configuration, its switches, its published file, and the topology."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes.intranode import ConfigError, IntranodeError
from runner.runtimes.intranode.mcoll import MCOLL, Config
from runner.runtimes.intranode.mcoll.config import SWITCHES
from runner.runtimes.intranode.mcoll.kinds import KINDS, OPERATIONS, code_of, operation_of
from runner.runtimes.intranode.mcoll.topology import Topology
from runner.runtimes.intranode.publish import main
from runner.runtimes.intranode.published import TunedLibrary
from tests.refusals import refusal, refused


def test_a_wrong_configuration_is_refused(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"objects": -1},
        {"radix": 1},
        {"objects": 2, "radix": 4},
        {"allgather": "tree"},
        {"allreduce": "none"},
        {"scatter": "ring"},
        {"allreduce_switch": -8},
        {"copy": "twice"},
        {"chunks": "all"},
        {"waiting": "never"},
    ]
    assert [refusal(ConfigError, lambda one: Config(**one), one) for one in wrong] == snapshot


def test_what_fits_a_node() -> None:
    assert (Config().objects_of(4), Config().radix_of(4)) == (4, 5)
    assert Config(objects=2).radix_of(4) == 3
    assert Config(radix=3).radix_of(4) == 3
    for config in (Config(objects=5), Config(radix=6)):
        with refused(ConfigError, "intranode.option"):
            config.radix_of(4)


def test_auto_takes_the_form_of_a_size() -> None:
    config = Config(allgather_switch=100, allgather_mpi_from=1000)
    assert [config.form("allgather", n) for n in (0, 99, 100, 999, 1000)] == [
        *("bruck", "bruck", "ring", "ring", "library")
    ]
    config = Config(allreduce_switch=8, allreduce_ring_from=64, allreduce_mpi_from=512)
    assert [config.form("allreduce", n) for n in (0, 8, 63, 64, 511, 512)] == [
        *("bruck", "scatter-bruck", "scatter-bruck", "ring", "ring", "library")
    ]
    assert Config(allreduce_switch=0).form("allreduce", 1 << 40) == "scatter-bruck"
    assert Config(allgather="rd").form("allgather", 10**9) == "rd"
    assert Config().form("scatter", 10**9) == "tree"


def test_switches_set_their_fields() -> None:
    parser = argparse.ArgumentParser()
    MCOLL.add_arguments(parser)
    words = "--objects 3 --radix 2 --overlap off --same-bits off --copy publish --spins 0"
    options = parser.parse_args([*words.split(), "--mcoll-config", "none"])
    found, source = MCOLL.from_options(options)
    expected = Config(objects=3, radix=2, overlap=False, same_bits=False, copy="publish", spins=0)
    assert (found, source) == (expected, "switches")


def _values(known: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(known) if isinstance(known[0], str) else st.integers(*known)


@given(
    st.fixed_dictionaries(
        {}, optional={switch: _values(known) for switch, (_, known, _) in SWITCHES.items()}
    )
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mcoll.json"
    objects, radix = settings.get("objects", 0), settings.get("radix", 0)
    if radix == 1 or (objects and radix > objects + 1):
        with pytest.raises(ConfigError, match="--radix"):
            MCOLL.write(path, settings)
        return
    MCOLL.write(path, settings)
    found = Config(**MCOLL.read(path))
    for switch, value in settings.items():
        field, known, _ = SWITCHES[switch]
        assert getattr(found, field) == (value == "on" if known == ("on", "off") else value)


def test_settings_are_published_for_this_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("MCOLL_CONFIG", raising=False)
    assert MCOLL.machine_config() == (Config(), "defaults")
    assert main(["--library", "mcoll", "--from", "allgather=ring,objects=2"]) == 0
    usual = tmp_path / "autotune" / "mcoll.json"
    assert MCOLL.machine_config() == (Config(allgather="ring", objects=2), str(usual))
    assert json.loads(usual.read_text())["schema"] == "mcoll/1"
    assert main(["--library", "mcoll", "--from", "steal=off"]) == 2
    assert "--steal" in capsys.readouterr().err
    other = tmp_path / "other.json"
    other.write_text('{"schema": "cab/1", "settings": {}}')
    monkeypatch.setenv("MCOLL_CONFIG", str(other))
    with refused(ConfigError, "intranode.settings_file"):
        MCOLL.machine_config()
    assert isinstance(MCOLL, TunedLibrary)


def test_ranks_are_on_nodes_in_the_order_of_their_first_ones() -> None:
    found = Topology.of(["b", "a", "b", "a"])
    assert found.ranks == ((0, 2), (1, 3))
    assert found.places == {0: (0, 0), 2: (0, 1), 1: (1, 0), 3: (1, 1)}
    assert Topology.of_equal_nodes(6, 2).ranks == ((0, 1, 2), (3, 4, 5))
    with refused(IntranodeError, "intranode.option"):
        Topology.of(["a", "a", "b"])
    for nodes in (-1, 4, 7):
        with refused(IntranodeError, "intranode.option"):
            Topology.of_equal_nodes(6, nodes)


def test_each_kind_and_operation_has_a_number() -> None:
    numbers = {code_of(np.dtype(kind), op) for kind in KINDS for op in OPERATIONS}
    assert numbers == set(range(len(KINDS) * len(OPERATIONS)))
    assert operation_of("MAX") == "max"
    for dtype in ("bool", "float16", "complex128", ">i4", "S3"):
        with refused(IntranodeError, "intranode.array"):
            code_of(np.dtype(dtype), "sum")
