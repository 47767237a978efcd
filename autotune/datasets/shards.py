"""Shards: the raw runs of one block as one Parquet file, written atomically."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from autotune.errors import UsageError, WorkError
from runner.files import MIB, atomic_file, open_regular
from runner.types import RunRecord

if TYPE_CHECKING:
    import pandas as pd


State = Literal["ok", "censored", "failed", "altered", "wrong"]
STATES: tuple[State, ...] = ("ok", "censored", "failed", "altered", "wrong")
SHARDS = "shards"
_OF_RUN: dict[str, State] = {
    "ok": "ok",
    "timeout": "censored",
    "not_read_back": "altered",
    "unverified": "wrong",
}


@dataclass(frozen=True)
class RunRow:
    """One run.  Times in seconds; ``value_s`` is the metric, NaN unless the run is ok.

    ``setting`` is an index into the cell's settings (0: the default).  ``limit_s`` is the limit of
    the metric at which the run was stopped (NaN: none).  ``foreign_load``: CPU seconds of other
    programs.
    """

    cell: str
    block: int
    order: int
    setting: int
    state: State
    reason: str
    value_s: float
    limit_s: float
    wall_s: float
    foreign_load: float
    started_at: float
    machine: str
    mpi: str
    commit: str


COLUMNS = [f.name for f in fields(RunRow)]
_TEXTS = [f.name for f in fields(RunRow) if str(f.type) in ("str", "State")]
_SECONDS = ("value_s", "limit_s", "wall_s")
LARGEST = 64 * MIB
"""Largest shard in bytes; the other bounds are checked against what the file states."""
ROWS, WIDTH, GROUPS, MEMORY = 100_000, 100, 1000, 256 * MIB
TEXT = 4096
"""Largest text in a shard, in bytes."""


@cache
def arrow_schema() -> Any:
    """The columns of a shard with their types (``pyarrow.Schema``)."""
    import pyarrow as pa

    types = {"str": pa.string(), "State": pa.string(), "int": pa.int32(), "float": pa.float64()}
    return pa.schema([(f.name, types[str(f.type)]) for f in fields(RunRow)])


def run_state(record: RunRecord) -> State:
    """The state of a run in a shard; the record's reason is stored beside it."""
    return _OF_RUN.get(record.state, "failed")


def shard_path(folder: Path, cell: str, block: int) -> Path:
    """The path of a block's shard."""
    return folder / SHARDS / f"{cell}.{block:03d}.parquet"


def write_shard(folder: Path, rows: Sequence[RunRow]) -> Path:
    """Write the rows of one block of one cell.

    Raises WorkError if the file cannot be written, ValueError for rows of several blocks.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    blocks = {(row.cell, row.block) for row in rows}
    if len(blocks) != 1:
        raise ValueError(f"a shard holds one block of one cell, not the blocks {sorted(blocks)}")
    path = shard_path(folder, rows[0].cell, rows[0].block)
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=arrow_schema())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, 0o644) as file:
            pq.write_table(table, file, compression="zstd")
    except OSError as problem:
        raise WorkError(
            f"cannot write {path}: {problem.strerror}", code="dataset.unwritable"
        ) from None
    return path


def stated_rows(path: Path) -> int:
    """The number of rows that a shard states; raises UsageError as :func:`read_shard`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_regular(path, LARGEST) as file:
            metadata = pq.read_metadata(file)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as problem:
        raise _damage_error(path, problem) from None
    _refuse_size(path, metadata)
    return int(metadata.num_rows)


def read_shard(path: Path) -> pd.DataFrame:
    """The rows of a shard.

    Raises UsageError if it is damaged, larger than the bounds, or has other columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_regular(path, LARGEST) as file:
            metadata = pq.read_metadata(file)
            _refuse_size(path, metadata)
            _refuse_columns(path, metadata.schema.to_arrow_schema())
            # Texts stay dictionary indices, so that a repeated text is in memory once.
            parquet = pq.ParquetFile(file, metadata=metadata, read_dictionary=_TEXTS)
            table = parquet.read(columns=COLUMNS).select(COLUMNS)
            _refuse_content(path, table)
        plain = table.replace_schema_metadata(None).cast(arrow_schema())
        plain.validate(full=True)
        frame: pd.DataFrame = plain.to_pandas()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as problem:
        raise _damage_error(path, problem) from None
    _refuse_figures(path, frame)
    unknown = sorted(set(frame["state"]) - set(STATES))
    if unknown:
        raise UsageError(
            f"{path}: state {unknown[0]!r} is not known; expected one of {', '.join(STATES)}",
            code="dataset.damaged",
        )
    return frame


def _refuse_figures(path: Path, frame: pd.DataFrame) -> None:
    """Raise UsageError for seconds that no run can have taken."""
    for name in _SECONDS:
        # A comparison with a missing value is false: that is not a fault.
        wrong = (frame[name] < 0) | (frame[name] == math.inf)
        if name == "value_s":
            wrong |= (frame["state"] == "ok") & ~(frame[name] > 0)
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise UsageError(
                f"{path}: {name} of row {row} is {frame[name].iloc[row]} s; expected a finite "
                "time, and a positive one for a run that counts",
                code="dataset.damaged",
            )


def _damage_error(path: Path, problem: Exception) -> UsageError:
    reason = getattr(problem, "strerror", None) or problem
    return UsageError(
        f"{path} is damaged: {reason}.\nGet it again from the dataset's source, or "
        "remove it and measure the block again with the command on the card",
        code="dataset.damaged",
    )


def _refuse_size(path: Path, metadata: Any) -> None:
    """Raise UsageError if the sizes that the file states are above the bounds."""
    groups = [metadata.row_group(i) for i in range(min(metadata.num_row_groups, GROUPS + 1))]
    figures = (
        (metadata.num_rows, ROWS, "rows"),
        (metadata.num_columns, WIDTH, "columns"),
        (metadata.num_row_groups, GROUPS, "row groups"),
        (sum(group.total_byte_size for group in groups), MEMORY, "bytes when it is unpacked"),
    )
    for value, most, what in figures:
        if not 0 <= value <= most:
            raise UsageError(
                f"{path} has {value} {what}; a shard has {most} at most, so it is not a shard "
                "of a dataset",
                code="dataset.too_large",
            )


def _refuse_columns(path: Path, schema: Any) -> None:
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise UsageError(
            f"{path}: no column {', '.join(missing)}; it is not a shard of a dataset",
            code="dataset.damaged",
        )
    for name in COLUMNS:
        if schema.names.count(name) > 1:
            raise UsageError(
                f"{path}: two columns {name}; it is not a shard of a dataset",
                code="dataset.damaged",
            )
        file_type, column_type = _kind(schema.field(name).type), arrow_schema().field(name).type
        if file_type != column_type:
            raise UsageError(
                f"{path}: column {name} is of type {file_type}, expected {column_type}; it is not "
                "a shard of a dataset",
                code="dataset.damaged",
            )


def _kind(kind: Any) -> Any:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _refuse_content(path: Path, table: Any) -> None:
    """Raise UsageError for too long texts and for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written_out = 0
    for name in COLUMNS:
        column = table[name]
        if column.null_count and arrow_schema().field(name).type != pa.float64():
            raise UsageError(
                f"{path}: column {name} has rows without a value; the file is damaged",
                code="dataset.damaged",
            )
        if name in _TEXTS:
            lengths = [_lengths(chunk) for chunk in column.chunks]
            longest = max(
                (pc.max(chunk_lengths).as_py() or 0 for chunk_lengths in lengths), default=0
            )
            written_out += sum(pc.sum(chunk_lengths).as_py() or 0 for chunk_lengths in lengths)
            if longest > TEXT or written_out > MEMORY:
                raise UsageError(
                    f"{path}: column {name} has a text of {longest} bytes (limit: {TEXT}), or all "
                    f"texts are more than {MEMORY} bytes; it is not a shard of a dataset",
                    code="dataset.too_large",
                )


def _lengths(chunk: Any) -> Any:
    """Bytes of the text in each row, without expanding the dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(chunk.type):
        return pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
    return pc.binary_length(chunk)
