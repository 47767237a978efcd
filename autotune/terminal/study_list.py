"""Terminal output of the list of stored studies."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.measurement.result_checks import MARK
from autotune.notes import Note
from autotune.store import StudySummary
from autotune.terminal.render import print_line, print_table


def print_list(lines: Sequence[tuple[StudySummary, Sequence[Note]]], label: str) -> None:
    """Print the list of studies in the database ``label``."""
    if not lines:
        print_line(f"no studies in {label}")
        return
    rows = [
        [
            s.hash[:8],
            s.app,
            str(s.ranks),
            s.strategy,
            f"{s.trials}",
            f"{s.runs}",
            s.status,
            MARK if reasons else "",
            s.created_at[:10],
        ]
        for s, reasons in lines
    ]
    columns = ["study", "app", ">ranks", "strategy", ">trials", ">runs", "status", "", "begun"]
    print_table("", columns, rows)
