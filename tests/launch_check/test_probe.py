"""The probe, the pools of threads, and the watch of running ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from autotune.check.pools import expected_threads, pinned_threads, pools_in
from autotune.check.probe import probe_program, read_records, world_size
from autotune.check.watch import LaunchWatch
from runner.cpus import cpus_of
from tests.case_table import case_table


def test_the_probe_says_where_it_runs_and_starts_the_program_behind_it() -> None:
    environment = os.environ | {"PMI_RANK": "3", "PMI_SIZE": "4", "OMP_NUM_THREADS": "2"}
    words = probe_program("echo", "started")
    output = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    [rank] = read_records(f"[1,0]<stdout>:{output.stdout}")
    assert rank.rank == 3
    assert rank.cpus == frozenset(os.sched_getaffinity(0))
    assert rank.environment["OMP_NUM_THREADS"] == "2"
    assert rank.namespaces["user"] == Path("/proc/self/ns/user").stat().st_ino
    assert rank.capabilities is not None
    assert output.stdout.endswith("started\n")


def test_records_of_several_ranks_are_in_their_order_and_damaged_ones_left_out() -> None:
    record = "autotune-check|node|{0}|0-{0}|1ff|user:[1]|pid:[2]|ipc:[3]|mnt:[4]|PMI_RANK={0}|end"
    text = f"x{record.format(1)}{record.format(0)}\nautotune-check|cut|end\n"
    assert [rank.rank for rank in read_records(text)] == [0, 1]


@case_table(
    ("variables", "family", "version", "size"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0"}, "openmpi", "5.0.11", 4),
        ({"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0"}, "mpich", "4.2.0", 1),
        ({"PMI_SIZE": "4", "PMI_RANK": "0"}, "mpich", "4.2.0", 4),
        ({"PMI_SIZE": "4", "PMI_RANK": "0"}, "openmpi", "4.1.4", 1),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, "openmpi", "5.0.11", 1),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "PMIX_RANK": "0"}, "openmpi", "5.0.11", 4),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "PMIX_RANK": "0"}, "mpich", "4.2.0", None),
    ],
)
def test_the_world_of_a_program_by_its_variables(
    variables: dict[str, str], family: str, version: str, size: int | None
) -> None:
    assert world_size(variables, family, version) == size


@case_table(
    ("pools", "variables", "number"),
    [
        (None, {}, 1),
        (None, {"OMP_NUM_THREADS": "4"}, 4),
        (frozenset(), {"OMP_NUM_THREADS": "4"}, 1),
        (frozenset({"gomp"}), {"OMP_NUM_THREADS": "4,2"}, 4),
        (frozenset({"gomp"}), {}, 1),
        (frozenset({"openblas"}), {}, 8),
        (frozenset({"openblas"}), {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "4"}, 1),
    ],
)
def test_threads_that_libraries_would_start(
    pools: frozenset[str] | None, variables: dict[str, str], number: int
) -> None:
    assert expected_threads(pools, variables, 8) == number


def test_threads_are_pinned_within_their_rank_or_to_a_list() -> None:
    cpus = cpus_of("4-7")
    assert pinned_threads({"OMP_PROC_BIND": "close"}, cpus, 2) == (cpus_of("4"), cpus_of("5"))
    assert pinned_threads({"OMP_PROC_BIND": "spread"}, cpus, 2) == (cpus_of("4"), cpus_of("6"))
    assert pinned_threads({"GOMP_CPU_AFFINITY": "0 1"}, cpus, 2) == (cpus_of("0"), cpus_of("1"))
    assert pinned_threads({"OMP_PROC_BIND": "false"}, cpus, 2) == (cpus, cpus)


def test_libraries_of_threads_are_known_by_their_files() -> None:
    maps = "7f00 r-xp /usr/lib/libopenblasp-r0.3.21.so\n7f01 /usr/lib/libgomp.so.1.0.0\n"
    assert pools_in(maps) == {"openblas", "gomp"}
    assert pools_in("/usr/lib/libmpi.so.40") == frozenset()


BUSY = """
import hashlib, threading
block = bytes(1 << 20)
def work():
    for _ in range(400):
        hashlib.sha256(block)
threads = [threading.Thread(target=work) for _ in range(2)]
idle = threading.Thread(target=threading.Event().wait, daemon=True)
for thread in (*threads, idle):
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_compute_are_counted_and_idle_ones_not() -> None:
    environment = os.environ | {"PMI_RANK": "1", "PMI_SIZE": "2"}
    environment.pop("PMIX_RANK", None)
    rank = subprocess.Popen([sys.executable, "-c", BUSY], env=environment)
    watch = LaunchWatch(os.getpid())
    end = time.monotonic() + 60
    while rank.poll() is None and time.monotonic() < end:
        watch.look()
        time.sleep(0.05)
    rank.wait()
    [seen] = watch.ranks()
    assert (seen.rank, seen.pid) == (1, rank.pid)
    assert seen.cpus == frozenset(os.sched_getaffinity(0))
    assert len(seen.threads) == 3
