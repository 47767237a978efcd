"""Terminal output of the check of launch lines."""

from __future__ import annotations

import shlex
from collections import Counter

from autotune.api.launch_check import CheckedLaunch, ExplainedFinding, FaultRow, LaunchCheck
from autotune.terminal.rank_picture import rank_picture
from autotune.terminal.render import print_hanging, print_line
from autotune.wording import seconds

_STARTED = {
    "program": "the program ran",
    "probe": "a probe ran in the program's place",
    "nothing": "nothing was started",
}


def print_check(check: LaunchCheck) -> None:
    """Print every launch of a check."""
    for at, launch in enumerate(check.launches):
        if at:
            print_line()
        if check.script is not None:
            print_line(f"{check.script}, line {launch.number}", bold=True)
        print_launch(launch)


def print_launch(launch: CheckedLaunch) -> None:
    """Print the score, the picture, and the findings, each with its line."""
    print_line(shlex.join(launch.line), whole=True)
    print_line(_how(launch))
    for row in rank_picture(launch):
        print_line(row, whole=True)
    kinds = len({finding.code for finding in launch.findings})
    score = f"[{launch.rules - kinds} / {launch.rules}]"
    weights = Counter(finding.weight for finding in launch.findings)
    text = ", ".join(f"{number} {weight}" for weight, number in weights.items())
    print_line(f"{score} {text or 'nothing is wrong with this line'}", bold=True)
    for finding in launch.findings:
        print_finding(finding)
    if launch.corrected_line is not None:
        print_line("The line with all of it:", bold=True)
        print_line(f"    {shlex.join(launch.corrected_line)}", whole=True)
    if launch.error_tail and {"launch.fails"} >= {one.code for one in launch.findings}:
        last = [line for line in launch.error_tail.splitlines() if line.strip()][-6:]
        print_line(f"The launch ended with exit code {launch.exit_code}:")
        for line in last:
            print_line(f"  {line}", whole=True)


def _how(launch: CheckedLaunch) -> str:
    text = _STARTED[launch.started]
    if launch.seconds is not None:
        limit = ", then its time was up" if launch.exit_code is None else ""
        text += f" ({seconds(launch.seconds)}{limit})"
    if launch.reason:
        text += f": {launch.reason}"
    return f"{launch.mpi}; {text}" if launch.mpi else text


def print_finding(finding: FaultRow) -> None:
    """Print one finding: what is, why it costs, and what to type."""
    print_hanging(
        f"[{finding.weight}] ", f"{finding.code}: {finding.statement} ({finding.certainty})"
    )
    print_hanging("    costs: ", finding.cost)
    if finding.corrected_line is not None:
        print_line(f"    line:  {shlex.join(finding.corrected_line)}", whole=True)
    if finding.compare is not None:
        print_line(f"    prove: {shlex.join(finding.compare)}", whole=True)
    if finding.advice:
        print_hanging("    ", finding.advice)


def print_explanation(explained: ExplainedFinding) -> None:
    """Print what a code means."""
    print_line(f"{explained.code} [{explained.weight}]: {explained.summary}", bold=True)
    print_line(explained.explanation)
