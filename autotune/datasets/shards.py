"""Shards: the raw runs of one block as one Parquet file, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from autotune.errors import UsageError, WorkError
from runner.types import RunRecord
from runner.whole import whole

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
class Row:
    """One run.  Times in seconds; ``value_s`` is the metric, NaN unless the run is ok.

    ``setting`` is an index into the cell's settings (0: the default), ``limit_s`` the limit of the
    metric at which the run was stopped (NaN: none), ``foreign_load`` CPU seconds of others.
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


_TYPES = {"str": pa.string(), "State": pa.string(), "int": pa.int32(), "float": pa.float64()}
SCHEMA = pa.schema([(f.name, _TYPES[str(f.type)]) for f in fields(Row)])
COLUMNS = [f.name for f in fields(Row)]


def state_of(record: RunRecord) -> State:
    """What a run means for its setting; the record's reason stays beside it."""
    return _OF_RUN.get(record.state, "failed")


def shard_path(folder: Path, cell: str, block: int) -> Path:
    """Where the shard of a block lies."""
    return folder / SHARDS / f"{cell}.{block:03d}.parquet"


def write_shard(folder: Path, rows: Sequence[Row]) -> Path:
    """Write the rows of one block of one cell; raises WorkError where that fails."""
    blocks = {(row.cell, row.block) for row in rows}
    if len(blocks) != 1:
        raise ValueError(f"a shard holds one block of one cell, not {sorted(blocks)}")
    path = shard_path(folder, rows[0].cell, rows[0].block)
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path, 0o644) as part:
            pq.write_table(table, part, compression="zstd")
    except OSError as problem:
        raise WorkError(f"cannot write {path}: {problem.strerror}") from None
    return path


def read_shard(path: Path) -> pd.DataFrame:
    """The rows of a shard; raises UsageError where it is truncated or has other columns."""
    try:
        frame: pd.DataFrame = pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowException) as problem:
        raise UsageError(
            f"{path} is damaged: {problem}.\nTake it from where the dataset came from, or remove "
            "it and measure the block again with the card's command"
        ) from None
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise UsageError(f"{path}: no column {', '.join(missing)}; it is no shard of a dataset")
    unknown = sorted(set(frame["state"]) - set(STATES))
    if unknown:
        raise UsageError(f"{path}: state {unknown[0]!r} is none of {', '.join(STATES)}")
    return frame[COLUMNS]
