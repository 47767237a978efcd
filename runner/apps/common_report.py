"""What applications print: phase times over the ranks, and the JSON line that ends the output."""

from __future__ import annotations

import json
from typing import Any

from runner.finite import all_finite


def phase_summary(comm: Any, seconds: dict[str, float]) -> dict[str, dict[str, float]]:
    """Maximum and mean over the ranks of each phase, seconds, on every rank.  Collective."""
    everyone: list[dict[str, float]] = comm.allgather(seconds)
    return {
        phase: {
            "max": max(s[phase] for s in everyone),
            "mean": sum(s[phase] for s in everyone) / len(everyone),
        }
        for phase in seconds
    }


def json_line(result: dict[str, Any]) -> str:
    """One line of JSON; NaN and infinity, which JSON does not have, become null."""
    return json.dumps(all_finite(result), allow_nan=False)
