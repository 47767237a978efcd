"""Each rule finds its fault, with a line where there is one, and nothing in a line that nearly has
it."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

from autotune.check.registry import RULES
from tests.case_table import case_table
from tests.launch_check.planted import FAULTS, findings_of
from tests.launch_check.test_parameter_rules import CODES as PARAMETER_CODES

NEARLY: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("nearly.toml").read_text(encoding="utf-8")
)["launch"]
MORE: list[tuple[str, dict[str, Any], str]] = [
    (
        "cgroup.cpuset",
        {
            "line": "mpiexec -np 8 ./a.out",
            "library": "mpich 4.2.0",
            "node": {"cpus": "0-3", "online_cpus": "0-63"},
            "ranks": [{"cpus": "0-3"}],
        },
        "mpiexec -np 4 ./a.out",
    ),
    (
        "threads.waiting",
        {
            "line": "mpiexec -n 2 ./a.out",
            "environment": {"OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "ACTIVE"},
            "library": "mpich 4.2.0",
            "node": {"cpus": "0-3"},
            "ranks": [{"cpus": "0-3", "threads": 4}],
        },
        "mpiexec -n 2 -genv OMP_WAIT_POLICY passive ./a.out",
    ),
    (
        "memory.numa_balancing",
        {
            "line": "mpirun -n 2 --bind-to numa ./a.out",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-7", "numa_nodes": 2, "numa_balancing": True},
            "ranks": [
                {"cpus": "0-3", "resident_bytes": 2**33},
                {"cpus": "4-7", "resident_bytes": 2**33},
            ],
        },
        "",
    ),
    (
        "launch.fails",
        {
            "line": "mpirun -n 2 --foo ./a.out",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-7"},
            "ranks": [],
            "error": "-----\nunknown option --foo\n",
        },
        "",
    ),
    (
        "launch.fails",
        {
            "line": "mpirun -n 4 --host localhost:4 ./a.out",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-1"},
            "ranks": [],
            "error": "A request was made to bind that would require binding\n"
            "processes to more cpus than are available in your allocation:\n",
        },
        "mpirun -n 4 --host localhost:4 --bind-to none ./a.out",
    ),
    (
        "container.variables",
        {
            "line": "mpirun -n 4 podman run --rm --pid=host --ipc=host IMAGE ./a.out",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-7"},
            "ranks": [],
        },
        "mpirun -n 4 podman run --env-host --rm --pid=host --ipc=host IMAGE ./a.out",
    ),
    (
        "container.variables",
        {
            "line": "mpirun -n 4 apptainer exec --cleanenv a.sif ./a.out --cleanenv",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-7"},
            "ranks": [],
        },
        "mpirun -n 4 apptainer exec a.sif ./a.out --cleanenv",
    ),
    (
        "container.namespaces",
        {
            "line": "mpirun -n 4 /usr/bin/podman run --rm --env-host --ipc host IMAGE ./a.out",
            "library": "openmpi 5.0.11",
            "node": {"cpus": "0-7"},
            "ranks": [],
        },
        "mpirun -n 4 /usr/bin/podman run --pid=host --rm --env-host --ipc host IMAGE ./a.out",
    ),
    (
        "worlds.mixed_versions",
        {
            "line": "mpirun -n 2 ./a.out",
            "library": "openmpi 4.1.4",
            "program_library": "openmpi 5.0.11",
            "node": {"cpus": "0-7"},
            "ranks": [{"cpus": "0"}, {"cpus": "1"}],
        },
        "/opt/openmpi-5/bin/mpirun -n 2 ./a.out",
    ),
    (
        "oversubscription.no_yield",
        {
            "line": "mpirun -n 4 ./a.out",
            "library": "impi 2021.12.0",
            "node": {"cpus": "0-1"},
            "ranks": [{"cpus": "0-1"}],
        },
        "mpirun -n 4 -genv I_MPI_WAIT_MODE 1 ./a.out",
    ),
    (
        "binding.one_core",
        {
            "line": "srun -n 2 -c 1 ./a.out",
            "environment": {"OMP_NUM_THREADS": "4"},
            "library": "mpich 4.2.0",
            "slurm": "23.02.3",
            "node": {"cpus": "0-7"},
            "ranks": [{"cpus": "0", "threads": 4}, {"cpus": "1", "threads": 4}],
        },
        "srun -n 2 --cpus-per-task=4 ./a.out",
    ),
]


@case_table(("code", "fault", "right"), MORE)
def test_a_fault_is_named_with_its_line(code: str, fault: dict[str, Any], right: str) -> None:
    line = findings_of(fault)[code].corrected_line
    assert shlex.join(line or ()) == right


@case_table("launch", NEARLY)
def test_a_line_that_nearly_has_a_fault_is_right(launch: dict[str, Any]) -> None:
    findings = findings_of(launch)
    assert launch["code"] not in findings
    assert not [code for code, finding in findings.items() if finding.weight.is_grave]


def test_every_rule_is_tested_both_ways() -> None:
    codes = {rule.code for rule in RULES} - PARAMETER_CODES
    assert codes <= {fault["code"] for fault in FAULTS} | {code for code, _, _ in MORE}
    assert codes <= {launch["code"] for launch in NEARLY}
