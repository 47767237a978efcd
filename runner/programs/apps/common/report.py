"""The output of applications: phase times over the ranks, and the JSON line at the end."""

from __future__ import annotations

import json
import math
from typing import Any


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
    clean = {k: None if _unsayable(v) else v for k, v in result.items()}
    return json.dumps(clean, allow_nan=False)


def _unsayable(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
