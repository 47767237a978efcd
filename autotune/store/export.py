"""Export of a study: a table of its runs (CSV, Parquet), an Optuna storage, or Caliper profiles.

The file appears completely or not at all. The table has one row per run, without summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import UsageError, WorkError
from autotune.store.model import StudyRecord, Value
from autotune.store.run_columns import column_kinds
from autotune.store.store import Store
from autotune.store.text import clean, dump
from runner.files import atomic_file
from runner.files.paths import exists, is_folder

if TYPE_CHECKING:
    import pandas as pd
    from pyarrow import Array, DataType, RecordBatch, Schema


Writer = Callable[[Store, int, BinaryIO, bool], None]


def export_study(
    store: Store,
    study_id: int,
    to: str,
    path: str | Path,
    force: bool = False,
    output: bool = False,
) -> Path:
    """Write a study to a file: ``to`` is csv, parquet, optuna or caliper.

    The first two have one row per run. ``output``: include the programs' output, which is most of a
    large study's bytes. An Optuna file is a storage that optuna-dashboard opens, a Caliper file a
    zip of profiles for Thicket. The file appears completely or not at all; returns its path. Raises
    UsageError for an unknown format, for a file that exists without ``force``, and for a directory
    that does not exist; WorkError if writing fails.
    """
    path = Path(path)
    writer = WRITERS.get(to)
    if writer is None:
        raise UsageError(
            f"cannot export to {to!r}; expected one of {', '.join(WRITERS)}",
            code="export.format_unknown",
        )
    if is_folder(path) or not is_folder(path.parent):
        raise UsageError(
            f"cannot export to {path}: expected a file name in an existing directory",
            code="file.unwritable",
        )
    if exists(path) and not force:
        raise UsageError(
            f"{path} exists; choose another name or overwrite it with --force", code="file.exists"
        )
    store.get_study(study_id)
    try:
        with atomic_file(path) as part:
            writer(store, study_id, part, output)
    except (OSError, SQLAlchemyError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise WorkError(f"cannot write {path}: {words}", code="file.unwritable") from error
    return path


# pandas, pyarrow and optuna take long to import and are needed only for an export.


def _csv(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from pyarrow import csv

    # Arrow's writer is ten times as fast as pandas': a hundred thousand runs are 400 MB of text.
    table = RunsTable(store, study_id, output)
    with csv.CSVWriter(file, table.schema) as writer:
        _write_all(table, writer.write_batch)


def _parquet(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from pyarrow import parquet

    table = RunsTable(store, study_id, output)
    with parquet.ParquetWriter(file, table.schema) as writer:
        _write_all(table, writer.write_batch)


def _write_all(table: RunsTable, write: Callable[[RecordBatch], None]) -> None:
    """Write a part of the table while the next one is read: Arrow writes without Python's lock."""
    with ThreadPoolExecutor(1) as thread:
        before: Future[None] | None = None
        for batch in table.batches():
            if before is not None:
                before.result()
            before = thread.submit(write, batch)
        if before is not None:
            before.result()


def _optuna(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from autotune.store.optuna_file import write_optuna

    write_optuna(store, study_id, Path(file.name))


def _caliper(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from autotune.store.caliper_profiles import write_profiles

    write_profiles(runs_frame(store, study_id), file)


WRITERS: dict[str, Writer] = {
    "csv": _csv,
    "parquet": _parquet,
    "optuna": _optuna,
    "caliper": _caliper,
}


PARAMETER = "param."
"""Prefix of the columns with the values of the trial's setting."""


def runs_frame(store: Store, study_id: int, output: bool = False) -> pd.DataFrame:
    """The table of :class:`RunsTable` as a frame; raises UsageError as it does."""
    from pyarrow import Table

    table = RunsTable(store, study_id, output)
    frame: pd.DataFrame = Table.from_batches(table.batches(), table.schema).to_pandas()
    return frame


class RunsTable:
    """One row per run in order, with the study's description and its trial's values as columns.

    A parameter that is not set is empty; lists and dictionaries are JSON text. ``setting`` is the
    launched one; it may lack parameters of the trial that proved inactive. ``output``: include the
    programs' output. Raises UsageError for an unknown study and for a study without runs.
    """

    def __init__(self, store: Store, study_id: int, output: bool = False) -> None:
        study = store.get_study(study_id)
        self._description = _describe(study)
        self._settings = store.trial_settings(study_id)
        self._parts = store.run_columns(study_id, output)
        self._first = next(self._parts, None)
        if self._first is None:
            raise UsageError(
                f"study {study.hash[:12]} has no runs yet, so there is nothing to export",
                code="study.no_runs",
            )
        names = sorted({name for setting in self._settings.values() for name in setting})
        self._parameters = {name: f"{PARAMETER}{clean(name)}" for name in names}
        self._makers: dict[str, Callable[[Value], Value]] = {}
        """What makes the values of a column those of one type."""
        self.schema = self._schema(output)

    def batches(self) -> Iterator[RecordBatch]:
        """The rows in order, some thousand at a time; to be called once."""
        from pyarrow import RecordBatch, array, int32

        places = {trial: place for place, trial in enumerate(self._settings)}
        values = {c: self._values(name, c) for name, c in self._parameters.items()}
        for part in chain([self._first], self._parts):
            assert part is not None
            of_trials = part["trial_id"]
            at = array([places.get(trial) for trial in of_trials], int32())
            columns = part | {name: [value] for name, value in self._description.items()}
            arrays = [
                values[f.name].take(at)
                if f.name in values
                else _array(columns[f.name], f.type, len(of_trials))
                for f in self.schema
            ]
            yield RecordBatch.from_arrays(arrays, schema=self.schema)

    def _values(self, name: str, column: str) -> Array:
        """The values of a parameter in the settings of all trials, as those of its column."""
        from pyarrow import array

        values = [setting.get(name) for setting in self._settings.values()]
        if (make := self._makers.get(column)) is not None:
            values = [None if value is None else make(value) for value in values]
        return array(values, self.schema.field(column).type)

    def _schema(self, output: bool) -> Schema:
        """The names and types of the columns, as those of a frame that pandas would write."""
        import pandas as pd
        import pyarrow as pa

        described = self._description.items()
        kinds = {name: "int64" if isinstance(v, int) else "str" for name, v in described}
        kinds |= column_kinds(output)
        for name, column in self._parameters.items():
            kinds[column] = _kind([s[name] for s in self._settings.values() if name in s])
            if kinds[column] in _MAKERS:
                self._makers[column] = _MAKERS[kinds[column]]
        empty = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds.items()})
        return pa.Schema.from_pandas(empty, preserve_index=False)


def _array(values: Sequence[Any], kind: DataType, count: int) -> Array:
    """A column; one that has the same value in each row is made from this one.

    One with a few texts is made from these: all read-backs of a study are ten megabytes.
    """
    from pyarrow import array, int32, repeat, scalar, types

    if values.count(values[0]) == len(values):
        return repeat(scalar(values[0], kind), count)
    if types.is_large_string(kind):
        texts = dict.fromkeys(values)
        if len(texts) * _REPEATS < len(values):
            places = {text: place for place, text in enumerate(texts)}
            return array(list(texts), kind).take(array([places[v] for v in values], int32()))
    return array(values, kind)


_REPEATS = 8
_MAKERS: dict[str, Callable[[Value], Value]] = {
    "Float64": float,
    "str": lambda value: clean(str(value)),
}


def _describe(study: StudyRecord) -> dict[str, Any]:
    key = study.key
    return {
        "study": study.hash,
        "app": clean(key.app.name),
        "arguments": dump(list(key.app.argv)),
        "input": key.app.input and clean(key.app.input),
        "ranks": key.ranks,
        "mpi": clean(f"{key.mpi.family} {key.mpi.version}"),
        "machine": clean(key.machine.cpu_model),
        "cores": key.machine.cores,
        "cluster": clean(key.cluster),
        "space": clean(key.space_name),
        "strategy": clean(key.strategy),
        "seed": key.seed,
    }


def _kind(values: Sequence[Value]) -> str:
    """The pandas type of a column: whole numbers, numbers, or text if any value is text."""
    if all(isinstance(value, int) and abs(value) < 2**63 for value in values):
        return "Int64"
    return "str" if any(isinstance(value, str) for value in values) else "Float64"
