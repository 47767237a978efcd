"""The room of a launch: slots of hosts and jobs in place of this node's cores."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.measurement.study_key import study_key
from autotune.space import DEFAULT
from autotune.targets.request import TargetRequest
from autotune.targets.resolve import resolve
from autotune.targets.target import Surroundings, Target
from runner.mpi.discover import adapter
from tests.mpis import library_named

MANY = 8
"""Ranks, as many as the slots of the files below and more than the cores of most machines."""
BATCH = ("SLURM_", "PBS_NODEFILE", "LSB_MCPU_HOSTS", "PE_HOSTFILE")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts").write_text("node001 slots=4\nnode002 slots=4\n")
    (tmp_path / "bare").write_text("node001\nnode002\n")
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith(BATCH)]:
        monkeypatch.delenv(name)
    return tmp_path


def target(line: str, mpi: str = "openmpi-4.1", cluster: str = "local") -> Target:
    request = TargetRequest(
        program=shlex.split(line), mpi=library_named(mpi).bin, cluster=cluster, command="run"
    )
    return resolve(request, lambda library: Surroundings(), lambda note: None)


def command(line: str, mpi: str) -> list[str]:
    found = target(line, mpi)
    return shlex.split(found.mpirun_line(adapter(found.library), None, DEFAULT))


@pytest.mark.parametrize("mpi", ["openmpi-4.1", "openmpi-5"])
@pytest.mark.parametrize("hosts", ["--hostfile hosts", "--machinefile hosts", "-H a:4,b:4"])
def test_ranks_on_named_hosts_are_compared_with_their_slots(mpi: str, hosts: str) -> None:
    line = f"mpirun -np {MANY} {hosts} --map-by node true"
    found = target(line, mpi)
    assert not found.is_oversubscribed
    assert (found.facts["cores"], found.facts["nodes"]) == (8, 2)
    words = command(line, mpi)
    assert not {"--oversubscribe", "mpi_yield_when_idle"} & set(words)
    assert words[words.index("--map-by") + 1] == "node"


@pytest.mark.parametrize("mpi", ["openmpi-4.1", "openmpi-5"])
def test_what_the_line_says_of_oversubscription_is_kept(mpi: str) -> None:
    words = command(f"mpirun -np {MANY} --hostfile hosts --oversubscribe true", mpi)
    assert "--oversubscribe" in words
    assert "mpi_yield_when_idle" not in words
    words = command(f"mpirun -np {MANY} --hostfile hosts --map-by core:OVERSUBSCRIBE true", mpi)
    assert words[words.index("--map-by") + 1] == "core:oversubscribe"  # data
    more = target(f"mpirun -np {MANY + 1} --hostfile hosts --oversubscribe true", mpi)
    assert more.is_oversubscribed


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"mpirun -np {MANY} --hostfile bare true", "hosts.slots_unknown"),
        (f"mpirun -np {MANY} -H node001:* true", "hosts.slots_unknown"),
        (f"mpirun -np {MANY + 1} --hostfile hosts true", "hosts.too_few_slots"),
        (f"mpirun -np {MANY} -H node001 true", "hosts.too_few_slots"),
    ],
)
def test_what_is_not_known_is_refused(line: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(line)
    assert caught.value.code == code
    if code == "hosts.slots_unknown":
        assert "autotune cluster init" in str(caught.value)  # data


def test_one_rank_for_each_host_is_known() -> None:
    assert not target("mpirun -np 2 --hostfile bare true").is_oversubscribed


def test_hosts_of_hydra(place: Path) -> None:
    (place / "h").write_text("node001:4\nnode002:4\n")
    assert not target(f"mpirun -n {MANY} -f h true", "mpich").is_oversubscribed
    assert not target(f"mpirun -n {MANY} -hosts a,b -ppn 4 true", "mpich").is_oversubscribed
    assert target(f"mpirun -n {MANY + 1} -f h true", "mpich").is_oversubscribed
    with pytest.raises(UsageError) as caught:
        target(f"mpirun -n {MANY} -hosts a,b true", "mpich")
    assert caught.value.code == "hosts.slots_unknown"


def test_names_of_this_machine_are_this_machine() -> None:
    cores = target("mpirun -np 1 true").cores
    here = target(f"mpirun -np {cores + 1} -H localhost:99 true")
    assert here.is_oversubscribed
    assert here.cores == cores


def test_a_job_of_several_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[001-002]")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    with pytest.raises(UsageError) as caught:
        target(f"mpirun -np {MANY} true")
    assert caught.value.code == "hosts.slots_unknown"
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "4(x2)")
    found = target(f"mpirun -np {MANY} true")
    assert (found.is_oversubscribed, found.cores, found.facts["nodes"]) == (False, 8, 2)


def test_a_defined_cluster_stays(place: Path) -> None:
    definition = place / "two.toml"
    definition.write_text('name = "two"\nnodes = 2\ncores_per_node = 4\n')
    found = target(f"mpirun -np {MANY} --hostfile bare true", cluster=str(definition))
    assert (found.is_oversubscribed, found.cores, found.facts["nodes"]) == (False, 8, 2)


def test_another_hostfile_is_another_study(place: Path) -> None:
    def key() -> object:
        found = target("mpirun -np 2 --hostfile hosts true")
        return study_key(found, found.space(), "ga", {}, 0).conditions

    before = key()
    (place / "hosts").write_text("node001 slots=4\nnode003 slots=4\n")
    assert key() != before
