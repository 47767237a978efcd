"""A :class:`runner.types.RunRecord` as columns and back.

Times that are not a number are kept as NULL and come back as NaN.  A valid run whose own figure is
not finite would otherwise be valued at its wall time: it becomes ``no_metric``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from autotune.store.text import clean, clean_or_none, damaged, dump, load, load_object
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
    "metric_count",
    "exit_code",
    "signal",
    "verified",
    "world_size",
    "output_bytes",
)
_PLAIN = (*_TEXT, *_AS_THEY_ARE)
INTEGERS = ("metric_count", "exit_code", "signal", "world_size", "output_bytes")
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
    # A database file keeps no negative zero.
    changes |= {name: 0.0 for name in (*_TIMES, "metric_s") if getattr(record, name) == 0}
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


class Rows:
    """Inverse of :func:`to_columns` for rows with the columns of these names, in their order.

    Nothing of what it gives is shared with another record.  Without the columns in ``WIDE`` it
    gives records in which they are empty.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [name for name in (*_PLAIN, *_TIMES, *_JSON) if name in names]
        self._pick = itemgetter(*map(list(names).index, self._names))
        self._json = [name for name in _JSON if name in names]
        self._parsed: dict[str, Any] = {"[]": [], "{}": {}}

    def __call__(self, row: Sequence[Any], read_back: Mapping[str, ReadBack]) -> RunRecord:
        values: dict[str, Any] = dict(zip(self._names, self._pick(row), strict=True))
        for name in _TIMES:
            if values[name] is None:
                values[name] = math.nan
        parsed = self._parsed
        for name in self._json:
            text = values[name]
            if name == "extra":  # The program's own figures: another text in each run, and nested.
                values[name] = {} if text == "{}" else load_object(text)
                continue
            known = parsed.get(text)
            if known is None:
                known = parsed[text] = load(text)
                if not isinstance(known, list | dict):
                    raise damaged(f"{name} is {known!r:.80}")
            values[name] = known.copy()
        return RunRecord(read_back=dict(read_back), **values)
