"""Verification of published files: do they still exist, unchanged, and are they still obeyed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.config.cluster import Cluster, cluster_file, load_cluster
from autotune.dialects import dialect
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.publish.content import Content, Evidence, commutative_part
from autotune.publish.expiry import Expiry, expiry, still_installed
from autotune.publish.formats import find
from autotune.publish.formats.base import Loading
from autotune.publish.header import Header, series
from autotune.publish.install import Text, check_config, read_installed
from autotune.publish.probe import Prober
from autotune.publish.trust import Trust
from autotune.publish.tune_file import NotObeyed
from autotune.space.trust import check_config_name, known_names
from autotune.study.unchecked import StoredAnswer, unchecked
from autotune.wording import UNGUARDED, count
from runner.files.paths import exists
from runner.types import LIBRARY

_PATTERNS = ("metric", "verify")


@dataclass
class FileState:
    """The state of one file.  ``in_force`` is None if it cannot be observed here; ``why`` in plain
    words, and ``code`` what is wrong.

    ``refused``: autotune would not write such a file, so no part of it was loaded.  ``expiry``: the
    library is of another version than the setting was proven with; the file may still be in force.
    """

    path: Path
    in_force: bool | None
    why: str
    header: Header | None = None
    refused: bool = False
    expiry: Expiry | None = None
    code: str | None = None

    @classmethod
    def of_refusal(cls, path: Path, header: Header | None, problem: UsageError) -> FileState:
        """The state of a file that must not be loaded."""
        why = f"refused: {problem}"
        return cls(path, False, why, header, refused=True, code=problem.code)

    @property
    def unchecked(self) -> list[Note]:
        """Why the results behind the file were not checked, as far as its header tells."""
        return [] if self.header is None else unchecked_evidence(self.header)

    @property
    def unsafe(self) -> Note | None:
        """A note if the file gives wrong results with operations that do not commute, although its
        header does not say that all do; else None."""
        header = self.header
        if header is None or self.refused or header.evidence.commutative_only:
            return None
        found = commutative_part(header.content, header.family)
        if not found:
            return None
        words = (
            "programs whose operations do not commute (MPI_Op_create) get wrong results by "
            f"{', '.join(found)}: remove it with autotune unpublish, and measure again"
        )
        return Note("published.unsafe", words, {"values": found})

    @property
    def lost(self) -> bool:
        """Whether the file is not what was proven: out of force, or expired; or unsafe."""
        return self.in_force is False or self.expiry is not None or self.unsafe is not None

    def to_json(self) -> dict[str, Any]:
        header = self.header
        return {
            "path": str(self.path),
            "in_force": self.in_force,
            "refused": self.refused,
            "code": self.code,
            "why": self.why,
            "format": header.format if header else None,
            "source": header.evidence.source if header else None,
            "unchecked": [note.to_json() for note in self.unchecked],
            "expired": None if self.expiry is None else self.expiry.to_json(),
            "unsafe": None if self.unsafe is None else self.unsafe.to_json(),
        }


def unchecked_evidence(header: Header) -> list[Note]:
    """Why the results behind a file were not checked; empty if they were, or if it is not known."""
    seen = header.evidence
    setting = {name: v for values in header.content.groups.values() for name, v in values.items()}
    found: dict[str, Note] = {}
    for check in seen.check:
        if "verify" not in check:  # An application that is known by its name.
            continue
        metric, verify = (None if check.get(k) is None else str(check[k]) for k in _PATTERNS)
        answer = StoredAnswer(metric, verify, seen.mpi_family, seen.mpi_version, setting)
        found |= {note.code: note for note in unchecked(answer)}
    return list(found.values())


def published_header(path: Path) -> Header:
    """The header of the file at ``path``; raises UsageError if autotune did not publish it."""
    text = read_installed(path)
    if text is None:
        raise UsageError(
            f"{path} does not exist; expected a file that autotune published",
            code="published.missing",
        )
    header = text.header
    if header is None:
        raise UsageError(
            f"{path} was not published by autotune: its header is missing", code="published.foreign"
        )
    return header


def cluster_of(header: Header, path: Path) -> Cluster:
    """The cluster that a file is for.  A header may name a cluster that is known here, but not a
    path.

    Raises UsageError for a path or an unknown cluster.
    """
    name = check_config_name("clusters", header.cluster, str(path))
    check_config(cluster_file(name))
    return load_cluster(name)


def look(path: Path, prober: Prober, spaces: Sequence[str] = ()) -> FileState:
    """Whether the file is unchanged and the library of ``prober`` obeys it.

    No part of it is executed or loaded unless the whole file is what autotune would write.
    ``spaces``: names or files of spaces whose parameters a file may have, in addition to those
    known here.
    """
    text = read_installed(path)
    if text is None:
        return FileState(path, False, "the file does not exist any more", code="published.missing")
    header = text.header
    if header is None:
        why = "the file no longer contains what autotune published"
        return FileState(path, False, why, code="published.gone")
    here = series(prober.library)
    gone = expiry(path, header, prober.library)
    if here.split(" (")[0] != header.mpi.split(" (")[0]:
        if gone is None or still_installed(header, prober.library):
            why = _other_mpi(header, here)
            return FileState(path, False, why, header, code="published.other_library")
        why = f"{gone.words}; {_other_series(header, here)}"
        return FileState(path, False, why, header, expiry=gone, code="published.other_library")
    state = _looked(path, text, header, prober, spaces)
    if gone is None or state.refused:
        return state
    why = f"{gone.words}; the file: {state.why}"
    return FileState(path, state.in_force, why, header, expiry=gone, code=state.code)


def _looked(
    path: Path, text: Text, header: Header, prober: Prober, spaces: Sequence[str]
) -> FileState:
    """Whether the library obeys an unedited file of its series."""
    try:
        Trust(prober.library, known_names(prober.library, spaces)).check(path, text, header)
    except UsageError as problem:
        return FileState.of_refusal(path, header, problem)
    if not header.proven:
        return FileState(path, None, f"not observable ({header.probe})", header)
    fmt = find(header.format)
    try:
        prober.check(fmt, header.content, _loading(path, text, header, prober))
    except NotObeyed as problem:
        return FileState(path, False, str(problem), header, code=problem.code)
    why = f"{count(len(header.content.names), 'value')} in force"
    if not header.evidence.guarded:
        why += f"; {UNGUARDED} and published with --force: not proven"
    elif not header.evidence.proven:
        why += "; published with --force: not proven"
    return FileState(path, True, why, header)


def _other_series(header: Header, here: str) -> str:
    return f"it is for {header.mpi}, but this is {here}"


def _other_mpi(header: Header, here: str) -> str:
    """A message: the MPI of the file, the MPI here, and the option that selects the right one."""
    words = _other_series(header, here)
    place = header.evidence.mpi_bin
    if not place:
        return words
    # A distribution with two families in one directory gives their launchers such names.
    own = Path(place) / f"mpirun.{header.evidence.mpi_family}"
    return (
        f"{words}.  It was measured with the library in {place}: --mpi "
        f"{own if exists(own) else place}"
    )


def _loading(path: Path, text: Text, header: Header, prober: Prober) -> Loading:
    """How a user's launch loads the file; raises NotObeyed for a parameter file that no launch
    reads.

    Other files are loaded from a private copy of the checked text, because the file itself may have
    changed since.
    """
    fmt = find(header.format)
    if not fmt.merges:
        return prober.staged(fmt, text.main)
    if path != fmt.default_path(header.cluster, prober.library).absolute():
        raise NotObeyed(
            f"{fmt.name}: this library reads "
            f"{fmt.default_path(header.cluster, prober.library)}, not {path}",
            code="publish.not_obeyed",
        )
    return fmt.live(path, prober.library)


def publications(states: Iterable[FileState]) -> dict[str, tuple[Evidence, Content]]:
    """source -> evidence and all values of its files together; refused files are left out."""
    found: dict[str, tuple[Evidence, Content]] = {}
    for state in states:
        if state.header is None or state.refused:
            continue
        evidence = state.header.evidence
        content = _as_parameters(state.header, state.path)
        if evidence.source in found:
            before = found[evidence.source][1]
            groups = {
                g: {**before.groups.get(g, {}), **content.groups.get(g, {})}
                for g in {*before.groups, *content.groups}
            }
            content = Content(groups)
        found[evidence.source] = (evidence, content)
    return found


def _as_parameters(header: Header, path: Path) -> Content:
    """Rules are compared by the parameters that name their file, or that hold them."""
    content = header.content
    if not content.rules:
        return content
    said = dialect(header.mpi.partition(" ")[0]).variables(content.rules)
    found = Content(content.groups)
    for name, value in {**find(header.format).naming(str(path)), **dict(said.values())}.items():
        found = found.with_value(LIBRARY, name, value)
    return found
