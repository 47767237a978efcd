"""Documents of published files: what would be written, the formats, and what was removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from autotune.config.cluster import load_cluster
from autotune.document import Document, Omitted
from autotune.errors import UsageError, WorkError
from autotune.publish import formats
from autotune.publish.plan import FilePlan
from autotune.publish.probe import Prober
from autotune.publish.publication import InstalledFile, PublishedFiles, diff, preview
from autotune.publish.source import PublicationSource
from runner.lock import MachineLock
from runner.mpi.library import Library


class PlannedFile(Document):
    """A file that would be written: its text, or what would change in it."""

    path: str
    format: str
    text: Omitted[str] = None
    diff: Omitted[str] = None


class PlannedFiles(Document):
    """Files that would be written."""

    schema_: Literal["autotune-published-1"] = Field(default="autotune-published-1", alias="schema")
    dry_run: Literal[True] = True
    files: list[PlannedFile]


class FormatRow(Document):
    """A format, and why its files cannot be proven with this MPI library; null: they can."""

    format: str
    summary: str
    cannot_be_proven: str | None


FormatList = list[FormatRow]


class RemovedFile(Document):
    """A published file that is gone, and what was done."""

    path: str
    done: str


class RemovedFiles(Document):
    """Files that were removed or restored."""

    schema_: Literal["autotune-unpublished-1"] = Field(
        default="autotune-unpublished-1", alias="schema"
    )
    files: list[RemovedFile]


def planned_files(files: Sequence[FilePlan], library: Library, show_diff: bool) -> PlannedFiles:
    """The files that would be written, with their texts or what would change in them."""
    rows = []
    for one in files:
        text = None if show_diff else preview(one, library)
        changes = diff(one, library) if show_diff else None
        rows.append(PlannedFile(path=str(one.path), format=one.fmt.name, text=text, diff=changes))
    return PlannedFiles(files=rows)


def published_files(source: PublicationSource, files: Sequence[InstalledFile]) -> PublishedFiles:
    """The files that were published."""
    return PublishedFiles(
        evidence=source.evidence.to_json(),
        doubts=list(source.doubts),
        files=[file.row for file in files],
    )


def format_list(library: Library) -> FormatList:
    """All formats, and which of them this library is seen to obey.

    Those of installed packages are tried now, with a launch. autotune's own were tried by its
    tests.
    """
    foreign = [
        one for one in formats.everything() if one not in formats.ALL and not one.obstacle(library)
    ]
    unseen = _unseen_formats(foreign, library) if foreign else {}
    return [
        FormatRow(
            format=one.name,
            summary=one.summary,
            cannot_be_proven=one.obstacle(library) or unseen.get(one.name),
        )
        for one in formats.everything()
    ]


def _unseen_formats(tried: Sequence[formats.Format], library: Library) -> dict[str, str]:
    """Why a launch with a sample of these formats did not obey it, by the format's name."""
    reasons = {}
    with MachineLock("shared"), Prober(library, load_cluster("local")) as prober:
        for one in tried:
            try:
                prober.try_sample(one)
            except (UsageError, WorkError) as problem:
                reasons[one.name] = str(problem)
    return reasons
