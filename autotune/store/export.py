"""A study as a file for other tools.  The file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import UsageError, WorkError
from runner.whole import whole

if TYPE_CHECKING:
    from autotune.store.store import Store

Writer = Callable[["Store", int, Path, bool], None]


def export_study(
    store: Store,
    study_id: int,
    to: str,
    path: str | Path,
    force: bool = False,
    output: bool = False,
) -> Path:
    """Write a study to a file: ``to`` is "csv" or "parquet" (one row per run) or "optuna".

    ``output``: with what the programs printed, which is most of a large study's bytes.
    An Optuna file is a storage that optuna-dashboard opens.  The file appears whole or not at
    all.  Raises UsageError for an unknown format, or a file that exists without ``force``.
    """
    path = Path(path)
    writer = WRITERS.get(to)
    if writer is None:
        raise UsageError(f"cannot export to {to!r}; expected one of {', '.join(WRITERS)}")
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"cannot export to {path}: expected a file name in an existing directory")
    if path.exists() and not force:
        raise UsageError(f"{path} exists; choose another name or overwrite it with --force")
    store.get_study(study_id)
    try:
        with whole(path) as part:
            writer(store, study_id, part, output)
    except (OSError, SQLAlchemyError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise WorkError(f"cannot write {path}: {words}") from error
    return path


# pandas and optuna take long to import, and only an export needs them here.


def _csv(store: Store, study_id: int, path: Path, output: bool) -> None:
    from pyarrow import Table, csv

    from autotune.store.frame import runs_frame

    # Ten times as fast as pandas' own writer: a hundred thousand runs are 400 MB of text.
    table = Table.from_pandas(runs_frame(store, study_id, output), preserve_index=False)
    csv.write_csv(table, path)


def _parquet(store: Store, study_id: int, path: Path, output: bool) -> None:
    from autotune.store.frame import runs_frame

    runs_frame(store, study_id, output).to_parquet(path, index=False)


def _optuna(store: Store, study_id: int, path: Path, output: bool) -> None:
    from autotune.store.optuna_file import write

    write(store, study_id, path)


WRITERS: dict[str, Writer] = {"csv": _csv, "parquet": _parquet, "optuna": _optuna}
