"""The figure of a program as it is printed.  A published test for ReFrame has the function, too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any


def plain_figure(check: Mapping[str, Any], output: str) -> float | None:
    """The number that ``check`` (a program of the evidence) reads in ``output``; None without one.

    No unit is read.  Of several numbers the one counts that the choice of the metric names.
    """
    metric = check.get("metric")
    if not metric:
        return None
    if metric.startswith("json:"):
        lines = [line for line in output.splitlines() if line.strip().startswith("{")]
        texts = [str(json.loads(line).get(metric[5:])) for line in lines[-1:]]
    else:
        texts = re.findall(metric, output, re.MULTILINE)
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    choose: dict[str, Callable[[list[float]], float]] = {
        "min": min,
        "max": max,
        "sum": sum,
        "mean": lambda all_: sum(all_) / len(all_),
        "first": lambda all_: all_[0],
        "last": lambda all_: all_[-1],
    }
    usual = "min" if check.get("metric_rate") else "max"
    return float(choose[check.get("metric_choice") or usual](numbers)) if numbers else None
