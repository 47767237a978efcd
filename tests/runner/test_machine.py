"""The description of this machine and its fingerprint."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from runner import machine
from runner.machine import Machine, describe_machine
from tests.case_table import case_table

SAMPLE = Machine(
    hostname="node7",
    architecture="x86_64",
    cpu_model="AMD EPYC",
    cores=2,
    hardware_threads=4,
    sockets=1,
    numa_nodes=1,
    caches={"L1d": 32768, "L2": 524288},
    memory_bytes=25_000_000_000,
    kernel="6.1.0",
    governor="performance",
    virtualised="",
    container="",
)


def test_this_machine() -> None:
    here = describe_machine()
    assert here.hostname == platform.node()
    assert 1 <= here.cores <= here.hardware_threads == len(os.sched_getaffinity(0))
    assert here.sockets >= 1
    assert here.numa_nodes >= 1
    assert here.memory_bytes > 1 << 27
    assert here.cpu_model
    assert all(size > 0 for size in here.caches.values())


def test_fingerprint_is_the_same_in_another_process() -> None:
    root = str(Path(machine.__file__).parents[1])
    text = "from runner.machine import describe_machine; print(describe_machine().fingerprint)"
    env = {**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == describe_machine().fingerprint


# Written down once: a change of the algorithm would separate old results from new ones.
def test_fingerprint_does_not_change_between_versions() -> None:
    assert SAMPLE.fingerprint == "206d21f6d02f7682"


@case_table(
    "change",
    [
        {"hostname": "node8"},
        {"kernel": "6.1.1"},
        {"governor": "powersave"},
        {"container": "docker"},
        {"memory_bytes": 25_010_000_000},
    ],
)
def test_what_does_not_matter(change: dict[str, object]) -> None:
    assert dataclasses.replace(SAMPLE, **change).fingerprint == SAMPLE.fingerprint


@case_table(
    "change",
    [
        {"cpu_model": "Xeon"},
        {"cores": 1},
        {"hardware_threads": 2},
        {"sockets": 2},
        {"numa_nodes": 2},
        {"caches": {"L1d": 32768}},
        {"memory_bytes": 50_000_000_000},
        {"virtualised": "KVM"},
        {"architecture": "aarch64"},
    ],
)
def test_what_matters(change: dict[str, object]) -> None:
    assert dataclasses.replace(SAMPLE, **change).fingerprint != SAMPLE.fingerprint


def test_affinity_limits_the_cores() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        here = describe_machine()
    finally:
        os.sched_setaffinity(0, before)
    assert (here.cores, here.hardware_threads) == (1, 1)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({}, None),
    ],
)
def test_quota_of_a_version_2_group(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert machine._quota_v2(tmp_path) == quota


@pytest.mark.parametrize(("quota_us", "quota"), [("200000", 2.0), ("-1", None)])
def test_quota_of_a_version_1_group(tmp_path: Path, quota_us: str, quota: float | None) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text(quota_us)
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    assert machine._quota_v1(tmp_path) == quota


def test_quota_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(machine, "cgroup_quota", lambda: 1.5)
    assert machine._usable_cores(threads) == 1
    monkeypatch.setattr(machine, "cgroup_quota", lambda: 0.2)
    assert machine._usable_cores(threads) == 1
