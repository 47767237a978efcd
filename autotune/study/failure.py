"""What to tell about a run that failed, behind its state and reason."""

from __future__ import annotations

from autotune.study.figures import figures
from runner.complaint import telling_lines
from runner.types import RunRecord

LINES = 8


def failure_lines(record: RunRecord) -> list[str]:
    """The program's last lines; where its figure was not found, those that look like one."""
    if record.valid:
        return []
    if record.state in ("no_metric", "unverified"):
        # It ran to its end: what it printed tells, not what it complained of.
        printed = record.stdout_tail if record.stdout_tail.strip() else record.stderr_tail
        said = [line for line in printed.splitlines() if line.strip()][-LINES:]
    else:
        said = telling_lines(record.stderr_tail, record.stdout_tail, LINES)
    lines = (
        ["last lines of the program's output:", *(f"  | {line}" for line in said)] if said else []
    )
    if record.state == "no_metric":
        lines += _figure_lines(record)
    return lines


def _figure_lines(record: RunRecord) -> list[str]:
    seen = figures(record.stdout_tail, record.extra)
    if seen:
        lines = ["these numbers of the output look like times; to use one:"]
        for figure in seen:
            lines += [f"  | {figure.line}", f"      {figure.words}"]
        return lines
    if figures(record.stderr_tail):
        moved = (
            "the program prints times on standard error, where --metric does not look; to "
            "redirect them:"
        )
        return [moved, "  -- sh -c 'exec \"$@\" 2>&1' sh PROGRAM ARGS"]
    if not record.stdout_tail.strip():
        return [
            "the program printed nothing on standard output; without --metric the wall time counts"
        ]
    return ["no number in the output looks like a time; without --metric the wall time counts"]


def failure_words(record: RunRecord) -> str:
    """The same as text that goes behind a message; empty where there is nothing to tell."""
    return "".join(f"\n{line}" for line in failure_lines(record))
