"""Records of runs as columns of a row, and back.

NaN times are stored as NULL and come back as NaN. A valid run whose figure is not a time (not
finite, or not positive) gets the state ``no_metric``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from autotune.store.printed import clean_lines
from autotune.store.text import clean, clean_or_none, damaged_row, dump, load, load_object
from runner.types import ReadBack, RunRecord

_JSON = ("command", "bindings", "inherited", "extra")
_TEXT = (
    "reason",
    "code",
    "metric_unit",
    "host",
    "place",
    "mpi_name",
    "mpi_version",
    "stdout_tail",
    "stderr_tail",
)
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
    "metric_rate",
    "metric_count",
    "exit_code",
    "signal",
    "verified",
    "init_s",
    "world_size",
    "output_bytes",
)
PRINTED_COLUMNS = ("printed_id", "printed_change")
_PLAIN = (*_TEXT, *_AS_THEY_ARE)
COLUMNS = (*_TEXT, *_TIMES, *_AS_THEY_ARE, *_JSON, "value_s")
"""Names of the columns of a record."""
OUTPUT = ("stdout_tail", "stderr_tail")
"""Columns with the program's output, 2 kB per run and more."""
DETAILS = _JSON
"""Long columns that are irrelevant to the speed of a run: what was launched, further figures."""


def storable(record: RunRecord) -> RunRecord:
    """The ``record`` as it will be read back: clean text, and no valid run without a finite
    figure."""
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
    changes["printed"] = clean_lines(record.printed)
    # A database file does not store a negative zero.
    zeros = (*_TIMES, "metric_s", "init_s")
    changes |= {name: 0.0 for name in zeros if getattr(record, name) == 0}
    if record.init_s is not None and not math.isfinite(record.init_s):
        changes["init_s"] = None
    if record.metric_s is not None and not math.isfinite(record.metric_s):
        changes["metric_s"] = None
    if record.valid and not _is_time(record.value_s):
        changes["state"] = "no_metric"
        changes["reason"] = f"its figure was {record.value_s}, not a time"
    return dataclasses.replace(record, **changes)


def _is_time(seconds: float) -> bool:
    return 0 < seconds < math.inf


def to_columns(record: RunRecord) -> dict[str, Any]:
    """Column values of a storable record, including ``value_s``."""
    columns = {name: getattr(record, name) for name in (*_TEXT, *_TIMES, *_AS_THEY_ARE)}
    columns.update((name, dump(getattr(record, name))) for name in _JSON)
    columns["value_s"] = record.value_s
    for name in (*_TIMES, "value_s"):
        if math.isnan(columns[name]):
            columns[name] = None
    return columns


class Rows:
    """Inverse of :func:`to_columns`, for rows with these columns in order.

    Records share no mutable value with each other. Without the columns in ``OUTPUT`` and
    ``DETAILS`` their fields are empty. Raises WorkError for a row that autotune did not write.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [name for name in (*_PLAIN, *_TIMES, *_JSON) if name in names]
        self._pick = itemgetter(*map(list(names).index, self._names))
        self._json = [name for name in _JSON if name in names]
        self._cache: dict[str, Any] = {"[]": [], "{}": {}}

    def __call__(self, row: Sequence[Any], read_back: Mapping[str, ReadBack]) -> RunRecord:
        values: dict[str, Any] = dict(zip(self._names, self._pick(row), strict=True))
        for name in _TIMES:
            if values[name] is None:
                values[name] = math.nan
        cache = self._cache
        for name in self._json:
            text = values[name]
            if name == "extra":  # The program's own figures: nested, and different in each run.
                values[name] = {} if text == "{}" else load_object(text)
                continue
            parsed_value = cache.get(text)
            if parsed_value is None:
                parsed_value = cache[text] = load(text)
            if not isinstance(parsed_value, dict if name == "inherited" else list):
                raise damaged_row(f"{name} is {parsed_value!r:.80}")
            values[name] = parsed_value.copy()
        record = RunRecord(read_back=dict(read_back), **values)
        if record.state == "ok" and not _is_time(record.value_s):
            raise damaged_row(f"it is valid with {record.value_s} s, expected a positive number")
        return record
