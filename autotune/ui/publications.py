"""Published files: their evidence, their changes, and the result of their last verification."""

from __future__ import annotations

import difflib
import hashlib
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from autotune.errors import AutotuneError, UsageError
from autotune.publish.install import load_text, read_companion, text_of
from autotune.publish.published_files import Verification, last_verifications
from autotune.publish.published_text import edit
from autotune.publish.undo import previous_content
from autotune.publish.verify import PublishedFile, proven_with, published_files
from autotune.ui.site import Site, View

_FRESH_S = 30
"""Seconds for which the list is cached: it queries the MPI libraries for their versions."""
SOURCE = "study:"


@dataclass(frozen=True)
class Publication:
    """A published file with its last verification; ``id`` names it in addresses."""

    file: PublishedFile
    verification: Verification | None

    @property
    def id(self) -> str:
        return hashlib.sha256(str(self.file.path).encode()).hexdigest()[:12]

    @property
    def study(self) -> str:
        """The digits of the study that is its evidence; "" for other evidence."""
        source = self.file.header.evidence.source
        return source.removeprefix(SOURCE) if source.startswith(SOURCE) else ""

    @property
    def values(self) -> dict[str, str]:
        """What the file sets, by name, of all groups."""
        groups = self.file.header.content.groups.values()
        return {name: value for group in groups for name, value in group.items()}

    @property
    def state(self) -> str:
        """The last verification in a word."""
        if self.file.expiry is not None:
            return "expired"
        if self.verification is None:
            return "not verified yet"
        return {True: "in force", False: "not in force", None: "not observable"}[
            self.verification.in_force
        ]


def publications(site: Site) -> tuple[list[Publication], list[str]]:
    """The user's published files, the newest first, and the faults of others."""
    key = ("published", int(time.monotonic() / _FRESH_S))
    files, problems = site.memoise(key, published_files)
    verifications = last_verifications()
    entries = [Publication(file, verifications.get(str(file.path))) for file in files]
    return sorted(entries, key=lambda one: one.file.header.date, reverse=True), problems


def publications_page(site: Site, request: Request) -> View:
    """All published files."""
    entries, problems = publications(site)
    return View(
        "published.html", "Published files", "/published", {"files": entries, "problems": problems}
    )


def publication_page(site: Site, request: Request) -> View:
    """One published file: evidence, verification, and what it changed."""
    publication_id = request.path_params["publication"]
    one = next((p for p in publications(site)[0] if p.id == publication_id), None)
    if one is None:
        raise UsageError(
            f"no published file {publication_id[:40]!r}; the list of published files has them",
            code="published.missing",
        )
    header = one.file.header
    evidence = header.evidence
    facts = [
        ("file", str(one.file.path)),
        ("format", header.format),
        ("cluster", header.cluster),
        ("published", header.date),
        ("for", header.mpi),
        ("proven with", " ".join(proven_with(header))),
        ("programs", ", ".join(evidence.programs)),
        ("runs", str(evidence.runs)),
        ("measured", evidence.date),
        ("machine", evidence.machine),
        ("test run", header.probe),
    ]
    sentence, difference = change(one.file)
    return View(
        "publication.html",
        f"Published: {one.file.path.name}",
        "/published",
        {
            "one": one,
            "evidence": evidence,
            "facts": [(name, text) for name, text in facts if text],
            "said": sentence,
            "changed": difference,
            "undo": f"autotune unpublish {shlex.quote(str(one.file.path))}",
        },
    )


def change(file: PublishedFile) -> tuple[str, list[tuple[str, str]]]:
    """What publishing changed: a sentence, and the lines with "+", "-" or " " of the difference."""
    path = file.path
    try:
        text = load_text(path)
        backup = previous_content(path, file.header)
        previous = None if backup is None else read_companion(path, backup.name)
        before = "" if previous is None else text_of(previous)
    except (AutotuneError, OSError) as problem:
        return f"It cannot be shown: {problem}", []
    if text is None:
        return "The file does not exist any more.", []
    if backup is not None and previous is None:
        return f"It cannot be shown: {backup.name} does not exist any more.", []
    sentence = "There was no such file before."
    if backup is not None:
        sentence = f"The previous content is in {Path(backup).name}."
    if edit(path, text, file.header) is not None:
        sentence += " The file was edited since, which is shown too."
    lines = difflib.unified_diff(before.splitlines(), text.main.splitlines(), n=2, lineterm="")
    # The first two lines name files; here both are this one.
    return sentence, [(line[:1], line[1:]) for line in list(lines)[2:]]
