"""Times as people write them: 90, 90s, 10m, 1.5h, 1h30m."""

from __future__ import annotations

import math
import re

from autotune.errors import UsageError

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h)?\s*")
_UNIT = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 1.0}


def parse_duration(text: str, where: str = "") -> float:
    """Seconds; raises UsageError for anything that is not a positive time, behind ``where`` (the
    option that said it)."""
    rest, total = text.strip().lower(), 0.0
    while rest:
        match = _PART.match(rest)
        if match is None:
            break
        total += float(match[1]) * _UNIT[match[2]]
        rest = rest[match.end() :]
    if rest or not 0 < total < math.inf:
        raise UsageError(
            f"{where}{text!r} is not a time; expected a number and s, m or h, such as 90s, "
            "10m or 1h30m"
        )
    return total
