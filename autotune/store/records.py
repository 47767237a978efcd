"""A :class:`runner.types.RunRecord` as columns and back.

Times that are not a number are kept as NULL and come back as NaN.  A valid run whose own figure is
not finite would otherwise be valued at its wall time: it becomes ``no_metric``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from autotune.store.text import clean, clean_or_none, dump, load
from runner.types import ReadBack, RunRecord

_JSON = ("command", "bindings", "inherited", "extra")
_TEXT = ("reason", "host", "place", "mpi_name", "mpi_version", "stdout_tail", "stderr_tail")
_TIMES = (
    "wall_s",
    "started_at",
    "cpu_s",
    "foreign_cpu_s",
    "foreign_limit_s",
    "irq_s",
    "load1",
)
_AS_THEY_ARE = (
    "state",
    "metric_s",
    "exit_code",
    "signal",
    "verified",
    "world_size",
    "output_bytes",
)
_PLAIN = (*_TEXT, *_AS_THEY_ARE)
INTEGERS = ("exit_code", "signal", "world_size", "output_bytes")
COLUMNS = (*_TEXT, *_TIMES, *_AS_THEY_ARE, *_JSON, "value_s")
"""Names of the columns that a record becomes."""
OUTPUT = ("stdout_tail", "stderr_tail")
"""What the program printed, 2 kB a run and more."""
WIDE = (*OUTPUT, *_JSON)
"""Those that are long, and say nothing of how fast a run was."""


def storable(record: RunRecord) -> RunRecord:
    """``record`` as it will come back: clean text, and no valid run without a finite figure."""
    changes: dict[str, Any] = {name: clean(getattr(record, name)) for name in _TEXT}
    changes["read_back"] = {
        clean(name): ReadBack(
            back.state,
            clean(back.requested),
            clean_or_none(back.effective),
            clean_or_none(back.source),
        )
        for name, back in record.read_back.items()
    }
    if record.metric_s is not None and not math.isfinite(record.metric_s):
        changes["metric_s"] = None
        if record.valid:
            changes["state"] = "no_metric"
            changes["reason"] = f"the program's own figure was {record.metric_s}, not a time"
    return dataclasses.replace(record, **changes)


def to_columns(record: RunRecord) -> dict[str, Any]:
    """Column values of a storable record; ``value_s`` among them."""
    columns = {name: getattr(record, name) for name in (*_TEXT, *_TIMES, *_AS_THEY_ARE)}
    columns.update((name, dump(getattr(record, name))) for name in _JSON)
    columns["value_s"] = record.value_s
    for name in (*_TIMES, "value_s"):
        if math.isnan(columns[name]):
            columns[name] = None
    return columns


def from_columns(row: Mapping[str, Any], read_back: Mapping[str, ReadBack]) -> RunRecord:
    """Inverse of :func:`to_columns`; nothing of what it gives is shared with another record.

    A row without the columns in ``WIDE`` gives a record in which they are empty.
    """
    values: dict[str, Any] = {name: row[name] for name in _PLAIN if name in row}
    for name in _JSON:
        text = row.get(name)
        # Most are empty, and a study has many.
        if text is not None:
            values[name] = [] if text == "[]" else {} if text == "{}" else load(text)
    for name in _TIMES:
        time = row[name]
        values[name] = math.nan if time is None else time
    return RunRecord(read_back=dict(read_back), **values)
