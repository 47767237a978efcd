"""Hosts and slots of a launch: lists, hostfiles, allocations; what a launcher makes of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import RunnerUsageError
from runner.mpi.discover import adapter
from runner.mpi.hosts import Hosts, host_list, hostfile, hosts_of, hydra_hosts_of
from runner.scheduler import allocation
from tests.case_table import case_table
from tests.mpis import library_named


@case_table(
    ("text", "slots", "unknown"),
    [
        ("a", {"a": 1}, set()),
        ("a,b", {"a": 1, "b": 1}, set()),
        ("a,a:3,b:2", {"a": 4, "b": 2}, set()),
        ("me@a.b-c.org:2,[fe80::1]:4", {"a.b-c.org": 2, "[fe80::1]": 4}, set()),
        ("a:*", {"a": 1}, {"a"}),
    ],
)
def test_a_list_of_hosts(text: str, slots: dict[str, int], unknown: set[str]) -> None:
    found = host_list(text, "-H")
    assert (dict(found.slots), set(found.open)) == (slots, unknown)


FILES = {
    "slots": ("node001 slots=2\nnode002 slots=2\n", {"node001": 2, "node002": 2}, set()),
    "comments": ("# x\n\na slots=2 # slots=9\n", {"a": 2}, set()),
    "blanks": ("  b   slots = 3  max-slots=5 // c", {"b": 3}, set()),
    "most": ("a max_slots=3\n", {"a": 3}, set()),
    "quoted": ('a slots="4" username=me\n', {"a": 4}, set()),
    "bare": ("a\nb slots=2\n", {"a": 1, "b": 2}, {"a"}),
    "repeated": ("a\na\na\n", {"a": 3}, set()),
    "user": ("me@10.0.0.1 slots=2\n", {"10.0.0.1": 2}, set()),
    "empty": ("# nothing\n", {}, set()),
}


@case_table("case", FILES)
def test_a_hostfile(case: str) -> None:
    text, slots, unknown = FILES[case]
    found = hostfile(text, "F")
    assert (dict(found.slots), set(found.open)) == (slots, unknown)


@case_table("text", ["a slots=x", "a b", "rank 0=a slot=0:1", "+n0", "^a", "=2"])
def test_other_lines_are_not_understood(text: str) -> None:
    with pytest.raises(RunnerUsageError) as caught:
        hostfile(text, "F")
    assert caught.value.code == "hosts.not_understood"


TEXTS = st.text(alphabet='ab.1:2*,@[]# /=\n"slotmax_-\x00é', max_size=60)


@given(TEXTS)
def test_no_text_raises_anything_but_our_error(text: str) -> None:
    for reader in (hostfile, host_list):
        with contextlib.suppress(RunnerUsageError):
            found = reader(text, "F")
            assert found.open <= set(found.slots)
            assert found.total >= 0


@given(st.dictionaries(st.sampled_from(["a", "b-1", "c.org"]), st.integers(1, 99), min_size=1))
def test_what_is_written_is_read(slots: dict[str, int]) -> None:
    text = "".join(f"{name} slots={n}\n" for name, n in slots.items())
    assert dict(hostfile(text, "F").slots) == slots
    listed = ",".join(f"{name}:{n}" for name, n in slots.items())
    assert dict(host_list(listed, "-H").slots) == slots


def test_options_of_open_mpi(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a slots=4\nb slots=2\nc\n")

    def found(*options: str, default: str | None = None) -> Hosts | None:
        return hosts_of(options, default, tmp_path)

    def slots(*options: str, default: str | None = None) -> dict[str, int]:
        hosts = found(*options, default=default)
        assert hosts is not None
        return dict(hosts.slots)

    assert found("--mca", "btl", "self") is None
    assert slots("-H", "a:2", "--host", "b") == {"a": 2, "b": 1}
    assert slots("--machinefile", "f") == {"a": 4, "b": 2, "c": 1}
    # Beside a file -H chooses, and one slot is meant if it gives no number.
    assert slots("--hostfile", "f", "-H", "a,b:9,z") == {"a": 1, "b": 2}
    assert slots(default="f") == {"a": 4, "b": 2, "c": 1}
    assert found(default="none") is None
    with pytest.raises(RunnerUsageError) as caught:
        found("--hostfile", "missing")
    assert caught.value.code == "hosts.unreadable"


def test_options_of_hydra(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a:4\nb:2 binding=x\n")
    assert hydra_hosts_of(("-ppn", "2"), None, tmp_path) is None
    known = hydra_hosts_of(("-f", "f"), None, tmp_path)
    assert known is not None
    assert (dict(known.slots), known.open) == ({"a": 4, "b": 2}, frozenset())
    listed = hydra_hosts_of(("-hosts", "a,b"), None, tmp_path)
    assert listed is not None
    assert listed.open == {"a", "b"}
    each = hydra_hosts_of(("-hosts", "a,b", "-ppn", "4"), None, tmp_path)
    assert each is not None
    assert (dict(each.slots), each.open) == ({"a": 4, "b": 4}, frozenset())


def test_hosts_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a slots=4\nb slots=2\n")
    for name in ("openmpi-4.1", "openmpi-5"):
        library = library_named(name)
        prefix = "PRTE_MCA_prte" if library.version_tuple >= (5,) else "OMPI_MCA_orte"
        env = {f"{prefix}_default_hostfile": str(tmp_path / "f")}
        found = adapter(library).hosts((), env, tmp_path)
        assert found is not None
        assert found.total == 6


@case_table(
    ("environment", "count", "slots"),
    [
        ({"SLURM_JOB_NUM_NODES": "3", "SLURM_TASKS_PER_NODE": "2(x2),1"}, 3, 5),
        (
            {
                "SLURM_JOB_NUM_NODES": "2",
                "SLURM_TASKS_PER_NODE": "1(x2)",
                "SLURM_JOB_CPUS_PER_NODE": "8(x2)",
            },
            *(2, 16),
        ),
        ({"SLURM_JOB_NUM_NODES": "2", "SLURM_TASKS_PER_NODE": "many"}, 2, None),
        ({"LSB_MCPU_HOSTS": "a 4 b 2"}, 2, 6),
        ({"LSB_MCPU_HOSTS": "a four"}, None, None),
        ({"PBS_NODEFILE": "/nonexistent"}, None, None),
    ],
)
def test_a_job_of_several_nodes(
    environment: dict[str, str], count: int | None, slots: int | None
) -> None:
    found = allocation(environment)
    assert found.several
    assert (found.count, found.slots) == (count, slots)


def test_files_of_batch_systems(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text("a\na\nb\n")
    found = allocation({"PBS_NODEFILE": str(nodes)})
    assert (found.several, found.count, found.slots) == (True, 2, 3)
    nodes.write_text("a\na\n")
    assert not allocation({"PBS_NODEFILE": str(nodes)}).several
    nodes.write_text("a 4 all.q <NULL>\nb 2 all.q <NULL>\n")
    found = allocation({"PE_HOSTFILE": str(nodes)})
    assert (found.count, found.slots) == (2, 6)


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["openmpi-4.1", "openmpi-5"])
@pytest.mark.parametrize(
    "options",
    [
        ("-H", "localhost"),
        ("-H", "localhost,localhost"),
        ("-H", "localhost:2,localhost"),
        ("--hostfile", "bare"),
        ("--hostfile", "repeated"),
        ("--hostfile", "most"),
        ("--hostfile", "slots", "-H", "localhost"),
        ("--hostfile", "slots", "-H", "localhost:2"),
    ],
)
def test_the_slots_are_those_of_the_launcher(
    name: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The launcher starts as many ranks as there are slots, and refuses one more."""
    for file, text in (
        ("bare", "localhost\n"),
        ("repeated", "localhost\n" * 3),
        ("most", "localhost max_slots=3\n"),
        ("slots", "localhost slots=3\n"),
    ):
        (tmp_path / file).write_text(text)
    library = library_named(name)
    found = adapter(library).hosts(options, {}, tmp_path)
    assert found is not None
    if "bare" in options:
        assert found.open == {"localhost"}  # The cores of the host, whatever their number.
        return
    env = {**os.environ, **adapter(library).identify_environment}

    def starts(ranks: int) -> bool:
        words = [library.launcher, "-n", str(ranks), *options, "--bind-to", "none", "true"]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, timeout=60)
        return done.returncode == 0

    assert starts(found.total)
    assert not starts(found.total + 1)
