"""Publication of planned files: stage, prove, install, and prove again or roll back."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from autotune.document import Document
from autotune.errors import AutotuneError, UsageError
from autotune.notes import Note, Say
from autotune.publish.formats.base import Loading
from autotune.publish.install import install, load_text, put, save_edits
from autotune.publish.plan import FilePlan
from autotune.publish.probe import Prober
from autotune.publish.published_files import remember_file
from autotune.publish.undo import remove
from runner.mpi.library import Library

UNSEEN = "a test run has to prove it before it is installed"


class PublishedRow(Document):
    """A file that was published."""

    path: str
    format: str
    probe: str
    """What a test run has shown."""
    proven: bool | None
    backup: str | None
    edited: str | None
    undo: str
    """Command that removes the file."""


class PublishedFiles(Document):
    """Files that were published."""

    schema_: Literal["autotune-published-1"] = Field(default="autotune-published-1", alias="schema")
    evidence: dict[str, Any]
    """Evidence in the files."""
    doubts: list[Note]
    files: list[PublishedRow]


@dataclass(frozen=True)
class InstalledFile:
    """One installed file; ``undo`` is the command that removes it."""

    path: Path
    format: str
    probe: str
    proven: bool
    backup: str | None
    saved_edits: Path | None

    @property
    def undo(self) -> str:
        return f"autotune unpublish {shlex.quote(str(self.path))}"

    @property
    def row(self) -> PublishedRow:
        """The part of a document."""
        return PublishedRow(
            path=str(self.path),
            format=self.format,
            probe=self.probe,
            proven=self.proven,
            backup=self.backup,
            edited=None if self.saved_edits is None else str(self.saved_edits),
            undo=self.undo,
        )


def preview(one: FilePlan, library: Library) -> str:
    """The text of the planned file, without the result of the probe."""
    return one.text(one.content, library, one.header.probe or UNSEEN).main


def diff(one: FilePlan, library: Library) -> str:
    """A unified diff from the present content to the planned file."""
    old = one.old.main if one.old is not None else ""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        preview(one, library).splitlines(keepends=True),
        str(one.path) if one.old is not None else "/dev/null",
        str(one.path),
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def publish_files(plans: Sequence[FilePlan], prober: Prober, say: Say) -> list[InstalledFile]:
    """Publish all files or none: if one fails, the files already installed are removed again.

    Raises UsageError for a format that would do harm here, NotObeyed if a file is not obeyed,
    WorkError if it cannot be written.  Previous content is then unchanged.
    """
    for one in plans:
        if why := one.fmt.harmful(prober.library):
            raise UsageError(f"{one.fmt.name} is not written: {why}.", code="publish.harmful")
    installed_files: list[InstalledFile] = []
    try:
        for one in plans:
            installed_files.append(_publish(one, prober, say))
    except BaseException:
        for installed_file, one in zip(
            reversed(installed_files), reversed(plans[: len(installed_files)]), strict=True
        ):
            _take_back(installed_file, one)
        raise
    for installed_file in installed_files:
        remember_file(installed_file.path)
    return installed_files


def _publish(one: FilePlan, prober: Prober, say: Say) -> InstalledFile:
    library = prober.library
    if one.obstacle is None:
        words = f"{one.fmt.name}: test runs with a private copy"
        say(Note("publish.test_runs", words, {"format": one.fmt.name}))
        staged_file = one if is_live(one, library) else replace(one, others="")
        probe = prober.prove(
            one.fmt, one.content, lambda content: staged_file.text(content, library, UNSEEN).main
        )
    else:
        probe = one.header.probe
    saved_edits = save_edits(one.path) if one.has_edits else None
    text = one.text(one.content, library, probe)

    def prove() -> None:
        if one.obstacle is None:
            place = "the installed file" if is_live(one, library) else "a copy of what was written"
            words = f"{one.fmt.name}: test runs with {place}"
            say(Note("publish.test_runs", words, {"format": one.fmt.name}))
            prober.check(one.fmt, one.content, in_place(one, prober))

    install(one.path, text, one.backup, prove)
    header = one.header
    return InstalledFile(one.path, one.fmt.name, probe, header.proven, header.backup, saved_edits)


def is_live(one: FilePlan, library: Library) -> bool:
    """Whether a launch loads the file from its path: a parameter file only from its usual place."""
    if not one.fmt.merges:
        return True
    return one.path == one.fmt.default_path(one.header.cluster, library).absolute()


def in_place(one: FilePlan, prober: Prober) -> Loading:
    """How a launch loads the installed file; a system file without the caller's own files."""
    if not is_live(one, prober.library):
        # Written elsewhere with -o: nothing loads it from there, and lines of others in it, which
        # may name programs and libraries, are never loaded because of us.
        text = load_text(one.path)
        own = "" if text is None else text.main[len(one.others) :]
        return prober.stage(one.fmt, own)
    loading = one.fmt.live(one.path, prober.library)
    if one.fmt.cluster_wide:
        return Loading(dict(loading.env) | {"HOME": str(prober.place())}, loading.options)
    return loading


def _take_back(installed_file: InstalledFile, one: FilePlan) -> None:
    """Remove an installed file; errors are ignored, because the first error is reported."""
    try:
        if one.old is not None and one.old.header is not None:
            put(one.path, one.old)
        else:
            remove(installed_file.path, force=True)
    except (AutotuneError, OSError):
        return
