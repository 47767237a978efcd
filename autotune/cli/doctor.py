"""``autotune doctor``: checks what is installed, what is missing, and how to get it."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.cli.options import JsonOut, opt
from autotune.cli.requests import ClusterName, Mpi
from autotune.terminal.doctor import print_findings
from autotune.terminal.render import write_document


def doctor(
    cluster: ClusterName = "local",
    mpi: Mpi = None,
    quick: Annotated[bool, opt("--quick", "Leave out every check that starts a program.")] = False,
    json_out: JsonOut = None,
) -> None:
    """Check this machine: MPI, start-up time, noise, foreign load, inherited settings, other jobs.

    It also checks what some commands need: Python with mpi4py, Slurm, PostgreSQL, a testbed, ssh.
    """
    from autotune.api.doctor import DoctorReport, examine
    from autotune.api.doctor_finding import BAD

    findings = examine(cluster, mpi, quick)
    if write_document(DoctorReport(findings=findings), json_out):
        print_findings(findings)
    if any(f.state == BAD and f.what == "MPI" for f in findings):
        raise typer.Exit(1)
