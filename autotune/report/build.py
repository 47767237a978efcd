"""Builds the pages of a study and of a cluster from the results database."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from datetime import UTC, datetime

from autotune.report.cluster import cluster_sections
from autotune.report.page import Page, Section
from autotune.report.study import study_section
from autotune.store import Store, StudyRecord

GUIDE = (
    "Gain is T_default / T - 1, from interleaved pairs of runs on fresh data. The "
    "interval contains the true gain with 95 % confidence; all looks at the data "
    "are accounted for. A run counts only if it ended without error, its result "
    "was verified, every requested parameter was read back as in force, and, "
    "unless the guard was off, no other program used the machine."
)


def study_page(store: Store, study: StudyRecord, more: Sequence[Section] = ()) -> Page:
    """The page of one study; ``more`` are sections about its program."""
    app = study.key.app
    return Page(
        f"{app.name}: the best way to start it",
        f"{study.key.mpi_title}, {study.key.ranks} ranks, cluster {study.key.cluster}",
        (study_section(store, study), *more),
        _footer(store),
    )


def cluster_page(store: Store, name: str, dataset: str | None = None) -> Page:
    """The page of everything that was measured on a cluster; ``dataset`` adds its level means.

    Raises UsageError if nothing was measured there.
    """
    sections = cluster_sections(store, name, dataset)
    title = f"MPI settings on {name}"
    return Page(title, "Measurements and their gains", tuple(sections), _footer(store))


def _footer(store: Store) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{GUIDE}  Made by autotune {_version()} on {now} from {store.label}."


def _version() -> str:
    try:
        return importlib.metadata.version("mpi-autotune")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "(unknown version)"
