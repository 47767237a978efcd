"""Terminal output of the checks of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import print_hanging

if TYPE_CHECKING:
    from autotune.api.doctor_finding import DoctorFinding


def print_findings(findings: list[DoctorFinding]) -> None:
    """Print a line for each check, with its advice."""
    for finding in findings:
        print_hanging(f"{finding.state:>7}  ", f"{finding.what}: {finding.words}")
        if finding.advice:
            print_hanging("         -> ", finding.advice)
