"""Terminal output of a stored study."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.api.study_details import StudyDetails
from autotune.store import StudyRecord
from autotune.store.keys import COMPARE, NOISE
from autotune.store.model import DEFAULT_KEY
from autotune.study.study_status import FINISHED
from autotune.targets.executables import ExecutableChange, ExecutableFile, change_words
from autotune.terminal.render import print_line, print_table
from autotune.terminal.transports import print_transports
from autotune.wording import UNGUARDED, Metric, beginning, key_parts, percent

ROOM = 54
"""Columns of a setting in a list at 80 columns, with the figures beside it."""
_OTHERS = (COMPARE, NOISE)
"""What is stored of these is printed whatever their status."""


def _print_executables(
    files: Sequence[ExecutableFile], changes: Sequence[ExecutableChange]
) -> None:
    for file in files:
        print_line(f"{file.kind}: {file.path}  sha256 {file.sha256[:12]}")
    if changes:
        print_line(f"not what was measured: {change_words(changes)}")


def _print_key(study: StudyRecord) -> None:
    key = study.key
    print_line(
        f"study {study.hash[:12]} of {study.created_at[:16]}: {key.app.name} on {key.ranks} ranks, "
        f"{key.mpi_title}, cluster {key.cluster}, space {key.space_name}, "
        f"{key.strategy}, seed {key.seed}"
    )
    if not key.has_guard:
        print_line(f"{UNGUARDED}: this study proves nothing")


def print_study(details: StudyDetails, limit: int, whole: bool) -> None:
    """Print a study with ``limit`` of its fastest settings, in full if ``whole``."""
    study = details.study
    _print_key(study)
    if study.result is not None and (study.status in FINISHED or study.key.strategy in _OTHERS):
        # A study without an answer needs no models of results.
        from autotune.terminal.stored_answer import print_answer

        print_answer(study, study.result, details.reasons)
    print_line()
    metric_data = (study.result or {}).get("metric")
    metric = Metric() if metric_data is None else Metric(**metric_data)
    reference = next((b.median_s for b in details.best if b.key == DEFAULT_KEY), None)
    rows = [
        [
            " ".join(key_parts(b.key)) if whole else beginning(b.key, ROOM),
            metric.words(b.median_s),
            "-" if reference is None else percent(reference / b.median_s - 1),
            str(b.runs),
        ]
        for b in details.best[:limit]
    ]
    is_answered = study.key.strategy == COMPARE or study.status in FINISHED
    has_comparison = study.result is not None and study.key.strategy != NOISE and is_answered
    above = "; for the comparison see gain above" if has_comparison else ""
    title = f"fastest settings by the median of all their runs (no comparison{above})"
    if not whole and any(row[0].endswith(" more") for row in rows):
        title += "; --whole lists them in full"
    print_table(title, ["setting", ">median", ">raw", ">runs"], rows)
    print_transports(
        {key if whole else beginning(key, ROOM): f for key, f in details.carriers.items()}
    )
    _print_executables(details.files, details.changes)
    words = ", ".join(f"{count} {state}" for state, count in details.run_states.items())
    print_line(f"runs: {words or 'none'}; status {study.status}")
