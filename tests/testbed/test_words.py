"""What needs no rights: names, options, messages, the cluster definition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.cli.testbed_commands import parse_latency, parse_rate
from autotune.config.cluster import load_cluster, read_cluster
from autotune.errors import UsageError
from runner import testbed as tb
from runner.errors import RunnerError
from runner.lock import VARIABLE, MachineLock
from runner.mpi.library import Library
from runner.mpi.openmpi.adapter import OpenMPI
from runner.mpi.openmpi.shown import SHOW_FILE
from runner.testbed import model, state
from runner.testbed.setup import _cpus
from runner.types import LaunchSpec
from tests.case_table import case_table
from tests.refusals import refused

OLD = Library("openmpi", "4.1.8", "/nowhere/bin", "/nowhere/bin/mpirun")


@case_table(
    ("text", "wanted"), [("100us", 1e-4), ("1ms", 1e-3), ("0.5 s", 0.5), ("0", 0.0), ("2MS", 2e-3)]
)
def test_latency(text: str, wanted: float) -> None:
    assert parse_latency(text) == pytest.approx(wanted)


@case_table(
    ("text", "wanted"),
    [("1gbit", 10**9), ("100Mbit", 10**8), ("2.5g", 2_500_000_000), ("unlimited", 0)],
)
def test_rate(text: str, wanted: int) -> None:
    assert parse_rate(text) == wanted


def test_status_does_not_wait_for_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv(VARIABLE, raising=False)
    with MachineLock("exclusive"):
        outside = {name: text for name, text in os.environ.items() if name != VARIABLE}
        outside["XDG_CACHE_HOME"] = str(tmp_path)  # Whatever is up here is none of its business.
        command = [sys.executable, "-m", "autotune", "testbed", "status", "--json", "-"]
        done = subprocess.run(
            command, env=outside, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
    assert f"pid {os.getpid()} " in done.stderr


@case_table("text", ["", "1", "ms", "-1ms", "1min", "1ms2", "fast"])
def test_wrong_latency_is_a_usage_error(text: str) -> None:
    with refused(UsageError, "testbed.syntax"):
        parse_latency(text)


@case_table("text", ["", "1", "gbit", "-1gbit", "1tbit", "0gb it"])
def test_wrong_rate_is_a_usage_error(text: str) -> None:
    with refused(UsageError, "testbed.invalid"):
        parse_rate(text)


@case_table("name", ["", "Two", "1st", "a b", "../x", "ten-of-it", "tenletters"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(RunnerError, match="1 to 9"):
        tb.up(name)


@given(st.integers(min_value=1, max_value=200))
def test_every_node_has_a_cpu_and_shares_only_where_it_must(nodes: int) -> None:
    cpus = os.sched_getaffinity(0)
    sets = _cpus(nodes, None)
    assert len(sets) == nodes
    assert all(one and set(one) <= cpus for one in sets)
    if nodes <= len(cpus):
        assert sum(map(len, sets)) == len(set().union(*sets))
        assert len({len(one) for one in sets}) == 1


@case_table(
    "wrong",
    [
        {"nodes": 1},
        {"nodes": 65},
        {"latency_s": -1.0},
        {"rate_bps": 5},
        {"mtu": 100},
        {"cores": 999},
    ],
)
def test_values_out_of_range(wrong: dict[str, int]) -> None:
    with refused(RunnerError, "testbed.range"):
        tb.up("ranges", **wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")
def test_without_root_one_clear_message() -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(RunnerError, match=r"needs\n  - root"):
            model.require()
    finally:
        os.seteuid(0)


def test_cluster_of_a_testbed_that_is_not_up_says_how_to_start_it() -> None:
    assert read_cluster("testbed").testbed == tb.DEFAULT_NAME
    with refused(RunnerError, "testbed.down"):
        load_cluster("testbed")


def test_nothing_is_up_and_nothing_is_down() -> None:
    assert tb.names() == []
    assert tb.status("none").state == "down"
    assert not tb.down("none").found
    with refused(RunnerError, "testbed.down"):
        tb.run("none", ("hostname",))


def test_a_testbed_has_cpus_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntestbed = "testbed"\ncpus = "0"\n')
    with refused(UsageError, "config.invalid"):
        read_cluster(str(file))


def test_old_open_mpi_counts_only_its_own_node(tmp_path: Path) -> None:
    text = "# by MPI_COMM_WORLD rank 0 (out of a total of 1) on node1\n"
    told = "orte_ess_num_procs=4 (environment)\n"
    spec = LaunchSpec(("a.out",), 4)
    (tmp_path / SHOW_FILE).write_text(text + told)
    assert OpenMPI(OLD).probe(spec, tmp_path).world_size == 4
    (tmp_path / SHOW_FILE).write_text(text)
    assert OpenMPI(OLD).probe(spec, tmp_path).world_size == 1


def test_oversubscribed_ranks_are_dealt_out_to_all_nodes() -> None:
    new = OpenMPI(Library("openmpi", "5.0.11", "/nowhere/bin", "/nowhere/bin/mpirun"))
    spec = LaunchSpec(("a.out",), 4, launch_options=("--hostfile", "x"), oversubscribe=True)
    assert "slot:OVERSUBSCRIBE" in new.command(spec, Path())
    by_node = replace(spec, placement={"map_by": "node"})
    assert "node:OVERSUBSCRIBE" in new.command(by_node, Path())
    one_node = replace(spec, launch_options=())
    assert ":OVERSUBSCRIBE" in new.command(one_node, Path())


def test_records_are_below_the_runtime_directory(places: Path) -> None:
    assert state.root() == places / "autotune-testbed"
