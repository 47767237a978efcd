"""``autotune studies``, ``show`` and ``export``: the studies in the results database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from autotune.api.studies import StudyDetails, list_studies, study_line
from autotune.cli.options import Force, JsonOut, StoreUrl, StudyName, opt
from autotune.cli.reading import reading
from autotune.errors import UsageError
from autotune.store.export import export_study
from autotune.terminal.render import print_line, write_json
from autotune.terminal.studies import print_list, print_study


def studies(store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """List the studies in the results database, newest first."""
    with reading(store) as database:
        lines, label = list_studies(database), database.label
    if json_out:
        write_json([study_line(*line) for line in lines], json_out)
    else:
        print_list(lines, label)


def show(
    study: StudyName,
    limit: Annotated[int, opt("--limit N", "Number of settings to list.", min=1)] = 10,
    whole: Annotated[
        bool, opt("--whole", "List every parameter of each setting; do not shorten.")
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show one study: its result, the best settings seen, what carried the messages, and how its
    runs ended."""
    with reading(store) as database:
        details = StudyDetails.of(database.find_study(study), database)
    if json_out:
        write_json(details.document(limit), json_out)
    else:
        print_study(details, limit, whole)


def export(
    study: StudyName,
    to: Annotated[
        str,
        opt("--to FORMAT", "File format: csv, parquet or optuna (a storage for optuna-dashboard)."),
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
    """Write all runs of a study to a file: csv, parquet, or a storage for optuna-dashboard."""
    endings = {"csv": "csv", "parquet": "parquet", "optuna": "optuna.db"}
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
