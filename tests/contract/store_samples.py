"""Small keys and records for the tests of the store; light, because processes start with it."""

from __future__ import annotations

import dataclasses
from typing import Any

from autotune.store import AppInfo, MachineInfo, MpiInfo, StudyKey
from runner.types import RunRecord

APP = AppInfo("jacobi3d", "/opt/jacobi3d", "ab" * 32, ("-n", "64"), "small", r"time: (\S+)", "ok")
MACHINE = MachineInfo(2, "A CPU", 8 * 2**30, "6.1.0", "node1")
MPI = MpiInfo("openmpi", "5.0.11", "/opt/openmpi", "cd" * 32)


def key(**changes: Any) -> StudyKey:
    """The same study each time, but for ``changes``."""
    given = {
        "app": APP,
        "machine": MACHINE,
        "mpi": MPI,
        "ranks": 4,
        "cluster": "local",
        "space_name": "small",
        "space_hash": "ef" * 32,
        "strategy": "ga",
        "seed": 1,
    }
    return StudyKey(**{**given, **changes})


def ok(seconds: float, **changes: Any) -> RunRecord:
    return dataclasses.replace(RunRecord("ok", wall_s=seconds, exit_code=0), **changes)
