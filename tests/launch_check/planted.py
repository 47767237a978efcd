"""The planted faults as facts: what ``planted.toml`` says of each, as the rules read it."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from autotune.check.finding import LaunchFinding
from autotune.check.launch_facts import (
    LaunchFacts,
    LaunchOutcome,
    NodeFacts,
    OtherJob,
    RankFacts,
)
from autotune.check.launch_line import LaunchLine, parse_line
from autotune.check.registry import examine
from autotune.check.transport_facts import StartUpFacts
from runner.cpus import cpus_of
from runner.mpi.hosts import host_list
from runner.mpi.library import Library
from runner.mpi.linkage import LinkedLibrary

FAULTS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("planted.toml").read_text(encoding="utf-8")
)["fault"]
PREFIXES = {"openmpi 5": "/opt/openmpi-5", "openmpi 4": "/opt/openmpi-4", "mpich": "/opt/mpich"}
"""Where each library of the list is installed."""


def planted(name: str) -> dict[str, Any]:
    """The fault of this name."""
    return next(fault for fault in FAULTS if fault["name"] == name)


def facts_of(fault: Mapping[str, Any]) -> LaunchFacts:
    """The facts of a planted fault, without those of parameters and transports."""
    library = _library(fault["library"])
    line = parse_line(shlex.split(fault["line"]), library)
    own = fault.get("program_library", fault["library"])
    node = fault["node"]
    cpus = cpus_of(node["cpus"])
    jobs = tuple(
        OtherJob(100 + number, job["command"], tuple(map(cpus_of, job["cpus"])))
        for number, job in enumerate(fault.get("jobs", ()))
    )
    online = cpus_of(node.get("online_cpus", node["cpus"]))
    more = {k: v for k, v in node.items() if k not in ("cpus", "online_cpus")}
    ranks = _ranks(fault, line, cpus)
    exit_code, message = fault.get("exit_code", 0 if ranks else 1), fault.get("error", "")
    return LaunchFacts(
        line,
        environment=fault.get("environment", {}),
        library=library,
        program_library=LinkedLibrary(f"{_prefix(own)}/lib/libmpi.so", *own.split()),
        program_launcher=f"{_prefix(own)}/bin/mpirun" if own != fault["library"] else "",
        node=NodeFacts("node", cpus, online, jobs=jobs, **more),
        ranks=ranks,
        outcome=LaunchOutcome(True, exit_code, 0.5, message),
        slots=_slots(line),
        slurm_version=tuple(map(int, fault.get("slurm", "").split(".")))
        if "slurm" in fault
        else (),
        mpi_types=("none", "pmi2", "pmix") if line.is_srun else (),
        start_up=_start_up(fault),
    )


def findings_of(fault: Mapping[str, Any]) -> dict[str, LaunchFinding]:
    """The findings about a planted fault by their code, on a machine with the CPUs of the list."""
    facts = facts_of(fault)
    with patch("runner.cpus.available_cpus", return_value=facts.node.cpus):
        return {one.code: one for one in examine(facts)}


def _slots(line: LaunchLine) -> int | None:
    hosts = line.option("host")
    return None if hosts is None else host_list(hosts.values[0], "--host").total


def _start_up(fault: Mapping[str, Any]) -> StartUpFacts | None:
    """The start of the fault, nearly all of which its cause takes; None without one."""
    if "start_up" not in fault:
        return None
    start_s = fault["start_up"]["seconds"]
    return StartUpFacts(start_s, {fault["start_up"]["cause"]: 0.9 * start_s})


def _prefix(title: str) -> str:
    return next((path for name, path in PREFIXES.items() if title.startswith(name)), "/opt/mpi")


def _library(title: str) -> Library:
    family, version = title.split()
    return Library(family, version, f"{_prefix(title)}/bin", f"{_prefix(title)}/bin/mpirun")


def _ranks(
    fault: Mapping[str, Any], line: LaunchLine, cpus: frozenset[int]
) -> tuple[RankFacts, ...]:
    """The ranks; one description stands for all, and ``own`` divides the CPUs among them."""
    count, described = line.ranks or 1, fault["ranks"]
    rows = described * count if len(described) == 1 else described
    return tuple(_rank(number, row, count, cpus, fault, line) for number, row in enumerate(rows))


def _rank(
    number: int,
    row: Mapping[str, Any],
    count: int,
    cpus: frozenset[int],
    fault: Mapping[str, Any],
    line: LaunchLine,
) -> RankFacts:
    width = len(cpus) // count or 1
    one_core = "PE=1" in fault["line"]
    own = sorted(cpus)[number : number + 1] if one_core else sorted(cpus)[number * width :][:width]
    mask = frozenset(own) if row["cpus"] == "own" else cpus_of(row["cpus"])
    threads = tuple(map(cpus_of, row.get("thread_cpus", ()))) or (mask,) * row.get("threads", 1)
    variables = {**fault.get("environment", {}), **line.assignments, **line.variables}
    space = row.get("user_namespace", 1)
    return RankFacts(
        number,
        "node",
        os.getpid(),
        mask,
        threads,
        tuple(row.get("pools", ())),
        row.get("world_size", count),
        {k: v for k, v in variables.items() if k not in row.get("lacks", ())},
        {"user": space},
        resident_bytes=row.get("resident_bytes"),
        huge_bytes=row.get("huge_bytes"),
    )
