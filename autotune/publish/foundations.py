"""What published files rest on: their studies with the runs of the proof, and stored results.

A published file holds its evidence, so it stays in force without them. But nobody can then look at
the runs behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.anova.classwide_result import RESULTS
from autotune.artifacts import ArtifactStore
from autotune.calibration.response import CALIBRATIONS
from autotune.collectives.algorithm_tables import TABLES
from autotune.errors import AutotuneError, UsageError
from autotune.measurement.run_history import CONFIRM
from autotune.publish.install import load_text
from autotune.publish.published_files import published
from autotune.publish.verify import published_header
from autotune.store import Store, StudyRecord
from autotune.store.findings import StoreFinding
from autotune.store.integrity import RESTORE
from autotune.study.screening_summary import LINK

STORES: tuple[ArtifactStore[Any], ...] = (RESULTS, TABLES, CALIBRATIONS)
"""The stores of results as files."""


@dataclass(frozen=True)
class Foundation:
    """What one published file rests on: its source (``study:ID``, ...) and its studies.

    ``studies`` are first digits of their hashes. A table of collectives names none.
    """

    path: Path
    source: str
    studies: tuple[str, ...]


def listed_files(further: Sequence[Path] = ()) -> list[Path]:
    """The published files of this user that are there, with ``further`` ones.

    A file of the list that is gone rests on nothing any more. Raises WorkError if the list is
    damaged.
    """
    return [path for path in dict.fromkeys([*published(), *further]) if not _is_gone(path)]


def _is_gone(path: Path) -> bool:
    try:
        return load_text(path) is None
    except UsageError:
        return False


def foundation(path: Path) -> Foundation:
    """What a published file rests on.

    Raises UsageError or WorkError if the file, or the stored result that it names, cannot be read.
    """
    source = published_header(path).evidence.source
    kind, _, ident = source.partition(":")
    if kind == "study":
        return Foundation(path, source, (ident,))
    if kind == "classwide":
        rows = RESULTS.find(ident).evidence
        return Foundation(
            path, source, tuple(dict.fromkeys(row.study for row in rows if row.study))
        )
    if kind == "collectives":
        TABLES.find(ident)
    return Foundation(path, source, ())


def studies_below(store: Store, study: StudyRecord) -> list[StudyRecord]:
    """A study, and the studies that its answer rests on: that of its cheap runs."""
    link = store.stored_document(study.id, LINK)
    if link is None:
        return [study]
    return [study, store.find_study(str(link["study"]))]


def check_foundations(store: Store, paths: Iterable[Path]) -> tuple[list[StoreFinding], set[str]]:
    """What published files rest on and is not there; the sources that they name."""
    findings: list[StoreFinding] = []
    sources: set[str] = set()
    for path in paths:
        try:
            base = foundation(path)
        except AutotuneError as problem:
            words = f"what the published file {path} rests on cannot be read: {problem}"
            advice = "see the code in the data; publish again, or restore what it names"
            data = {"file": str(path), "code": problem.code}
            findings.append(StoreFinding("store.published_unknown", words, advice, data))
            continue
        sources.add(base.source)
        for ident in base.studies:
            findings += _check_study(store, base, ident)
    return findings, sources


def _check_study(store: Store, base: Foundation, ident: str) -> list[StoreFinding]:
    data: dict[str, Any] = {"file": str(base.path), "source": base.source, "study": ident}
    try:
        study = store.find_study(ident)
        studies_below(store, study)
    except AutotuneError as problem:
        return [
            StoreFinding(
                "store.published_study_missing",
                f"the published file {base.path} rests on study {ident:.12}, which is not, or not "
                f"whole, in {store.label} [{problem.code}]",
                f"if it is in another database, check that (--store); else {RESTORE}",
                data | {"code": problem.code},
            )
        ]
    expected = (study.result or {}).get("confirmation_runs", 0)
    phases = store.run_counts(study.id, "phase")
    proof_runs = sum(n for phase, n in phases.items() if phase.partition(":")[0] == CONFIRM)
    if isinstance(expected, int) and proof_runs < expected:
        return [
            StoreFinding(
                "store.published_runs_missing",
                f"the published file {base.path} rests on {expected} runs of the proof of study "
                f"{ident:.12}; {proof_runs} of them are there",
                RESTORE,
                data | {"expected": expected, "runs": proof_runs},
            )
        ]
    return []


def check_artifacts(sources: set[str]) -> list[StoreFinding]:
    """Stored results that cannot be read, or that nobody names and a newer one replaces.

    ``sources``: what published files name. The newest result for a cluster and library is used
    without being named.
    """
    findings = []
    for store in STORES:
        newest: dict[tuple[str, str], Any] = {}
        rows: list[tuple[Path, Any]] = []
        for path in sorted(store.folder.glob("*.json")):
            try:
                rows.append((path, store.read(path)))
            except UsageError as problem:
                findings.append(
                    StoreFinding(
                        "store.artifact_unreadable",
                        f"the {store.what} {path} cannot be read: {problem}",
                        "remove the file, or make it again",
                        {"file": str(path), "code": problem.code},
                    )
                )
        for _, one in rows:
            place = _library_place(one)
            newest[place] = max((newest.get(place, one), one), key=lambda r: (r.date, r.id))
        for path, one in rows:
            is_used = newest[_library_place(one)] is one
            if not is_used and f"{store.name}:{one.id}" not in sources:
                findings.append(
                    StoreFinding(
                        "store.artifact_unnamed",
                        f"the {store.what} {path} is named by no published file, and a newer one "
                        f"is for the same cluster and library",
                        "remove the file if nobody needs it",
                        {"file": str(path), "source": f"{store.name}:{one.id}"},
                    )
                )
    return findings


def _library_place(stored: Any) -> tuple[str, str]:
    """Cluster and library of a stored result; chosen without a measurement it has no library."""
    return (stored.cluster, str(stored.mpi.get("name", "")))
