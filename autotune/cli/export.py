"""``autotune export``: the runs of a study as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from autotune.cli.options import Force, StoreUrl, StudyName, opt
from autotune.cli.reading import reading
from autotune.errors import UsageError
from autotune.store.export import export_study
from autotune.terminal.render import print_line


def export(
    study: StudyName,
    to: Annotated[
        str,
        opt(
            "--to FORMAT",
            "File format: csv, parquet, optuna (a storage for optuna-dashboard), or caliper "
            "(a zip of profiles for Thicket).",
        ),
    ] = "csv",
    out: Annotated[
        Path | None,
        opt("-o --out FILE", "File to write. Default: autotune-STUDY.FORMAT in this directory."),
    ] = None,
    force: Force = False,
    output: Annotated[
        bool, opt("--output", "Write also what the programs printed (csv and parquet only).")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Write all runs of a study to a file: csv, parquet, or for optuna-dashboard or Thicket."""
    endings = {"csv": "csv", "parquet": "parquet", "optuna": "optuna.db", "caliper": "caliper.zip"}
    if to not in endings:
        raise UsageError(
            f"--to {to!r} is not a known format; expected one of {', '.join(endings)}",
            code="study.unknown",
        )
    with reading(store) as database:
        record = database.find_study(study)
        path = out or Path(f"autotune-{record.hash[:8]}.{endings[to]}")
        file = export_study(database, record.id, to, path, force, output)
    print_line(f"wrote {file}")
