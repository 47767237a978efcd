"""Searches as rows of a table: how each ended, its answer in words, and the file that keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.common import Answer, rejected_share
from runner.files import write_atomically

DECIDED = {"recommended", "keep_default", "contradicted", "inconclusive"}
"""Status of a search that is over; a search with another status is tried again by the next call."""
Row = dict[str, Any]


def outcome(search: Answer) -> Row:
    """Status, gain with its interval and setting of a search; ``failed`` without a result."""
    result = search.result
    if not result:
        return {"status": "failed", "reason": search.text.splitlines()[-1:]}
    return {
        "status": result["status"],
        "gain": result["gain"],
        "ci": result["gain_ci95"],
        "setting": result["recommended"]["setting"],
        "rejected": rejected_share(result),
        "wall_s": search.wall_s,
        "result": result,
    }


def is_decided(row: Row) -> bool:
    return row.get("status") in DECIDED


def kept(path: Path) -> Row | None:
    """The stored row of a search; one that is not decided is searched again."""
    row = json.loads(path.read_text()) if path.exists() else {}
    return row if is_decided(row) else None


def keep(path: Path, row: Row) -> None:
    """Store the row of a search that is decided."""
    if is_decided(row):
        write_atomically(path, json.dumps(row, indent=2) + "\n")


def answer(row: Row) -> str:
    """The answer of the search, in words."""
    status = row.get("status")
    if status == "recommended":
        low, high = (f"{end:+.1%}" if end is not None else "open" for end in row["ci"])
        return f"{row['gain']:+.1%} ({low} to {high})"
    words = {
        "keep_default": "default stands",
        "contradicted": "default stands (objection)",
        "inconclusive": "default stands (not decided)",
    }
    return words.get(f"{status}", f"open: {status}")
