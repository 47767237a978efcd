"""Searches as rows of a table: how each ended, and its answer in words."""

from __future__ import annotations

from typing import Any

from benchmarks.common import Answer, rejected_share
from benchmarks.harness.cells import Row

DECIDED = {"recommended", "keep_default", "contradicted", "inconclusive"}
"""Status of a search that is over; a search with another status is tried again by the next call."""


def outcome(search: Answer) -> Row:
    """Status, gain with its interval, runs and setting of a search; ``failed`` without a result."""
    result = search.result
    if not result:
        return {"status": "failed", "reason": "".join(search.text.splitlines()[-1:])}
    return {
        "status": result["status"],
        "gain": result["gain"],
        "ci": result["gain_ci95"],
        "finalist": best_finalist(result),
        "setting": result["recommended"]["setting"],
        "runs": result["search_runs"] + result["confirmation_runs"],
        "rejected": rejected_share(result),
        "result": result,
    }


def is_decided(row: Row) -> bool:
    return row.get("status") in DECIDED


def best_finalist(result: dict[str, Any]) -> dict[str, Any] | None:
    """Gain and interval of the fastest setting of the proof; None without a proof."""
    tried = [one for one in result["finalists"] if one["gain"] is not None]
    best = max(tried, key=lambda one: one["gain"], default=None)
    return best and {"gain": best["gain"], "ci": best["gain_ci"], "pairs": best["blocks"]}


def answer(row: Row) -> str:
    """The answer of the search, in words."""
    status = row.get("status")
    if status == "recommended":
        return gain_words(row)
    words = {
        "keep_default": "default stands",
        "contradicted": "default stands (objection)",
        "inconclusive": "default stands (not decided)",
    }
    said = words.get(f"{status}") or ": ".join(["open", *filter(None, (status, row.get("reason")))])
    return f"{said}: {gain_words(row['finalist'])}" if row.get("finalist") else said


def gain_words(gain: dict[str, Any]) -> str:
    """A gain with its interval, or with the number of its pairs if they are too few for one."""
    ends = [f"{end:+.1%}" if end is not None else "open" for end in gain["ci"] or (None, None)]
    few = ends == ["open", "open"] and "pairs" in gain
    said = f"{gain['pairs']} pairs" if few else " to ".join(ends)
    return f"{gain['gain']:+.1%} ({said})"
