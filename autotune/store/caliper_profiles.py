"""Runs of a study as profiles of Caliper: a zip with one JSON file for each run, for Thicket.

A profile has two regions: the launch (wall time) and, inside of it, the program's own figure. Its
metadata are the columns of the other exports: the values of the setting, library, machine, state.
The form is the split JSON of ``cali-query`` (https://software.llnl.gov/Caliper).
"""

from __future__ import annotations

import json
import math
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("Node order", "path", "sum#time.duration", "inclusive#sum#time.duration")
LAUNCH, FIGURE = "launch", "figure"
"""Names of the regions."""


def write_profiles(runs: pd.DataFrame, file: BinaryIO) -> None:
    """Write a zip of one profile for each row of ``runs`` (one run each; times in seconds)."""
    names = list(runs.columns)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, values in enumerate(runs.itertuples(index=False, name=None)):
            row = {name: v for name, v in zip(names, values, strict=True) if not _is_empty(v)}
            archive.writestr(f"run-{number:06d}.json", json.dumps(_profile(row), default=_plain))


def _profile(row: dict[str, Any]) -> dict[str, Any]:
    wall = float(row.get("wall_s", 0.0))
    figure = row.get("metric_s")
    nodes: list[dict[str, Any]] = [{"label": LAUNCH, "column": "path"}]
    data: list[list[float]] = [[0, 0, wall, wall]]
    if figure is not None:
        # A program may print a time that is longer than its run: both stay as they are.
        nodes.append({"label": FIGURE, "column": "path", "parent": 0})
        data = [[0, 0, max(wall - figure, 0.0), wall], [1, 1, figure, figure]]
    return {
        "data": data,
        "columns": list(_COLUMNS),
        "column_metadata": [
            {"is_value": True},
            {"is_value": False},
            {"is_value": True},
            {"is_value": True},
        ],
        "nodes": nodes,
        **{name: value for name, value in row.items() if name not in ("data", "nodes", "columns")},
    }


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def _is_empty(value: Any) -> bool:
    return value is None or str(value) == "<NA>" or (isinstance(value, float) and math.isnan(value))
