"""Terminal output of stored studies."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.store import StudyRecord
from autotune.study.comparison_document import stored_figures
from autotune.study.result import damaged_result
from autotune.targets.executables import ExecutableChange, ExecutableFile, change_words
from autotune.terminal.noise import print_noise
from autotune.terminal.outcome import print_comparison
from autotune.terminal.render import print_line
from autotune.wording import UNGUARDED

ROOM = 54
"""Columns of a setting in a list at 80 columns, with the figures beside it."""


def print_executables(files: Sequence[ExecutableFile], changes: Sequence[ExecutableChange]) -> None:
    for file in files:
        print_line(f"{file.kind}: {file.path}  sha256 {file.sha256[:12]}")
    if changes:
        print_line(f"not what was measured: {change_words(changes)}")


def print_stored_comparison(study: StudyRecord) -> None:
    try:
        options = study.key.strategy_options
        print_comparison(options["a"], options["b"], stored_figures(study.result or {}))
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise damaged_result(problem) from None


def print_stored_noise(study: StudyRecord) -> None:
    try:
        print_line()
        print_noise(study.result or {})
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise damaged_result(problem) from None


def print_key(study: StudyRecord) -> None:
    key = study.key
    print_line(
        f"study {study.hash[:12]} of {study.created_at[:16]}: {key.app.name} on {key.ranks} ranks, "
        f"{key.mpi_title}, cluster {key.cluster}, space {key.space_name}, "
        f"{key.strategy}, seed {key.seed}"
    )
    if not key.has_guard:
        print_line(f"{UNGUARDED}: this study proves nothing")
