"""Terminal output of a check of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_note
from autotune.wording import count

if TYPE_CHECKING:
    from autotune.api.graph_check import GraphCheck


def print_graph_check(check: GraphCheck) -> None:
    """Print the findings, and what the declared dependencies are good for."""
    for note in check.findings:
        print_note(note)
    rows = check.dependencies
    needed = sum(row.verdict == "needed" for row in rows)
    print_line(
        f"{count(len(check.schedules), 'schedule')}, {count(check.conflicts, 'conflict')}: "
        + (count(len(check.findings), "finding") if check.findings else "no findings"),
        bold=True,
    )
    if rows:
        print_line(f"{needed} of the {len(rows)} declared dependencies are needed")
    for verdict, words in (
        ("implied", "others give the same order (no fault)"),
        ("untested", "not judged, because one side did nothing in these runs"),
    ):
        texts = [f"{r.region} on {r.dependency}" for r in rows if r.verdict == verdict]
        if texts:
            print_line(f"{words}: {', '.join(texts)}")
