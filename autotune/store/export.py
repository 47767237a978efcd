"""Export of a study: a table of its runs (CSV, Parquet), an Optuna storage, or Caliper profiles.

The file appears completely or not at all. The table has one row per run, without summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import UsageError, WorkError
from autotune.store.model import StudyRecord, Value
from autotune.store.runs import INTEGERS
from autotune.store.store import Store
from autotune.store.text import clean, dump
from runner.files import atomic_file
from runner.files.paths import exists, is_folder

if TYPE_CHECKING:
    import pandas as pd


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


# pandas and optuna take long to import and are needed only for an export.


def _csv(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from pyarrow import Table, csv

    # Arrow's writer is ten times as fast as pandas': a hundred thousand runs are 400 MB of text.
    table = Table.from_pandas(runs_frame(store, study_id, output), preserve_index=False)
    csv.write_csv(table, file)


def _parquet(store: Store, study_id: int, file: BinaryIO, output: bool) -> None:
    from pyarrow import Table, parquet

    table = Table.from_pandas(runs_frame(store, study_id, output), preserve_index=False)
    parquet.write_table(table, file)


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
    """One row per run in order, with the study's description and its trial's values as columns.

    A parameter that is not set is empty; lists and dictionaries are JSON text. ``setting`` is the
    launched one; it may lack parameters of the trial that proved inactive. ``output``: include the
    programs' output. Raises UsageError for an unknown study and for a study without runs.
    """
    import pandas as pd

    study = store.get_study(study_id)
    description = _describe(study)
    settings = {trial.id: trial.setting for trial in store.trials(study_id)}
    columns = store.run_columns(study_id, output)
    count = len(columns["run"])
    if not count:
        raise UsageError(
            f"study {study.hash[:12]} has no runs yet, so there is nothing to export",
            code="study.no_runs",
        )
    of_runs = [
        {} if trial is None else settings.get(trial, {}) for trial in columns.pop("trial_id")
    ]
    data: dict[str, Any] = {name: [value] * count for name, value in description.items()} | columns
    for name in ("trial", "block", "position", *INTEGERS):
        data[name] = pd.array(data[name], dtype="Int64")
    data["verified"] = pd.array(data["verified"], dtype="boolean")
    for name in sorted({name for setting in settings.values() for name in setting}):
        data[f"{PARAMETER}{clean(name)}"] = _column([setting.get(name) for setting in of_runs])
    return pd.DataFrame(data)


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


def _column(values: Sequence[Value | None]) -> pd.Series[Any]:
    """Whole numbers, numbers, or text if any value is text: a column has one type."""
    import pandas as pd

    present_values = [value for value in values if value is not None]
    if all(isinstance(value, int) and abs(value) < 2**63 for value in present_values):
        return pd.Series(list(values), dtype="Int64")
    if not any(isinstance(value, str) for value in present_values):
        return pd.Series(list(values), dtype="Float64")
    return pd.Series([None if v is None else clean(str(v)) for v in values], dtype="string")
