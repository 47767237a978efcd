"""The state of published files: still there, what was published, obeyed, and not expired?

A setting is proven for one version of its MPI library.  Parameters change their meaning in any
release, so another version is another library, patch releases too: the file has expired.  A setting
that was measured again with the installed version (``verify-published --renew``) counts as proven
with it.  That is known without a launch; whether a library obeys the file is seen by launches.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.config.cluster import Cluster, cluster_file, load_cluster
from autotune.dialects import dialect
from autotune.errors import AutotuneError, UsageError
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.notes import Note
from autotune.publish.content import Content, Evidence, commutative_part
from autotune.publish.formats import find
from autotune.publish.formats.base import Loading
from autotune.publish.header import Header, series
from autotune.publish.install import Text, check_config, load_published, load_text
from autotune.publish.probe import Prober
from autotune.publish.published_files import published
from autotune.publish.published_text import Trust
from autotune.publish.tune_file import NotObeyed
from autotune.space.outside_names import check_config_name, known_names
from autotune.wording import UNGUARDED, count
from runner.errors import RunnerError
from runner.files.paths import exists, is_file, real_path
from runner.mpi.discover import LAUNCHERS, find_library, libraries
from runner.mpi.library import Library
from runner.types import LIBRARY

_PATTERNS = ("metric", "verify")


@dataclass(frozen=True)
class Expiry:
    """An expired file: the version of its library that is proven, and the one that is installed."""

    path: Path
    family: str
    proven_version: str
    installed_version: str
    mpi: str = ""
    """The launcher of the installed library, if ``--mpi`` must name it; "" for the first that
    loads the file."""

    @property
    def words(self) -> str:
        """What has expired, without the path."""
        return (
            f"expired: proven with {self.family} {self.proven_version}, "
            f"installed is {self.installed_version}"
        )

    @property
    def commands(self) -> dict[str, str]:
        """The command that proves the setting again, and the one that removes it."""
        path = shlex.quote(str(self.path))
        mpi = f"--mpi {shlex.quote(self.mpi)} " if self.mpi else ""
        return {
            "prove again": f"autotune verify-published --renew {mpi}{path}",
            "remove": f"autotune unpublish {path}",
        }

    @property
    def advice(self) -> str:
        """Both commands as a sentence."""
        return "; ".join(f"to {what}: {line}" for what, line in self.commands.items())

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "family": self.family,
            "proven_with": self.proven_version,
            "installed": self.installed_version,
            "commands": self.commands,
        }


def proven_with(header: Header) -> tuple[str, str]:
    """Family and version of the library with which the setting was measured last."""
    family, _, rest = header.mpi.partition(" ")
    evidence = header.evidence
    version = evidence.renewed.get("mpi_version") or evidence.mpi_version
    # Evidence of early versions does not name it; the file was then seen to be obeyed by this one.
    return family, str(version or rest.partition("seen with ")[2].rstrip(")"))


def expiry(path: Path, header: Header, library: Library) -> Expiry | None:
    """The expiry of a file if ``library`` is the installed one; None if it is proven with it.

    None also for a library of another family, which does not load the file.
    """
    family, version = proven_with(header)
    if library.family != family or library.version == version:
        return None
    usual = loading_library(header, libraries())
    mpi = "" if usual is not None and library.launcher == usual.launcher else library.launcher
    return Expiry(path, family, version, library.version, mpi)


def has_first_library(header: Header, library: Library) -> bool:
    """Whether the library of the measurement seems to be in its place, beside ``library``.

    The folder is named by a file, so it is looked at, and nothing in it is started.
    """
    place = str(header.evidence.renewed.get("mpi_bin") or header.evidence.mpi_bin)
    if not place or real_path(place) == real_path(library.bin):
        return False
    return any(is_file(Path(place) / name) for name in LAUNCHERS)


@dataclass(frozen=True)
class PublishedFile:
    """A published file of this user; ``expiry`` is None if it has not expired or is not judged."""

    path: Path
    header: Header
    expiry: Expiry | None


def published_files(main_library: Library | None = None) -> tuple[list[PublishedFile], list[str]]:
    """The user's published files, and what is wrong with unreadable ones as sentences.

    ``main_library`` is the library that counts for its family.  Of any other family it is the first
    installation found; for a file of another series it is one of that series, if there is one.  A
    file whose library is not found at all is not judged.
    """
    files: list[PublishedFile] = []
    problems: list[str] = []
    try:
        paths = published()
    except AutotuneError as problem:
        return [], [str(problem)]
    installations = _libraries(main_library) if paths else []
    for path in paths:
        try:
            text = load_text(path)
            header = None if text is None else text.header
        except AutotuneError as problem:
            problems.append(f"{path}: {problem}")
            continue
        if header is None:
            continue
        library = loading_library(header, installations)
        lapse = None if library is None else expiry(path, header, library)
        files.append(PublishedFile(path, header, lapse))
    return files, problems


def expired_files() -> list[Expiry]:
    """The expired ones of :func:`published_files`."""
    return [one.expiry for one in published_files()[0] if one.expiry is not None]


def _libraries(main_library: Library | None) -> list[Library]:
    """The libraries that are found here, the one that a command uses first."""
    if main_library is None:
        try:
            main_library = find_library()
        except RunnerError:
            return []
    return [main_library, *libraries()]


def loading_library(header: Header, candidates: Sequence[Library]) -> Library | None:
    """The library that loads the file here."""
    family, version = proven_with(header)
    own = [one for one in candidates if one.family == family]
    same = (one for one in own if _series(one.version) == _series(version))
    return next(same, own[0] if own else None)


def _series(version: str) -> list[str]:
    return version.split(".")[:2]


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
        values = commutative_part(header.content, header.family)
        if not values:
            return None
        words = (
            "programs whose operations do not commute (MPI_Op_create) get wrong results by "
            f"{', '.join(values)}: remove it with autotune unpublish, and measure again"
        )
        return Note("published.unsafe", words, {"values": values})

    @property
    def has_lost_proof(self) -> bool:
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
    proof = header.evidence
    setting = {name: v for values in header.content.groups.values() for name, v in values.items()}
    reasons: dict[str, Note] = {}
    for check in proof.check:
        if "verify" not in check:  # An application that is known by its name.
            continue
        metric, verify = (None if check.get(k) is None else str(check[k]) for k in _PATTERNS)
        answer = StoredAnswer(metric, verify, proof.mpi_family, proof.mpi_version, setting)
        reasons |= {note.code: note for note in unchecked(answer)}
    return list(reasons.values())


def published_header(path: Path) -> Header:
    """The header of the file at ``path``; raises UsageError if autotune did not publish it."""
    return load_published(path, ": its header is missing")[1]


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
    text = load_text(path)
    if text is None:
        return FileState(path, False, "the file does not exist any more", code="published.missing")
    header = text.header
    if header is None:
        why = "the file no longer contains what autotune published"
        return FileState(path, False, why, code="published.gone")
    own = series(prober.library)
    lapse = expiry(path, header, prober.library)
    if own.split(" (")[0] != header.mpi.split(" (")[0]:
        if lapse is None or has_first_library(header, prober.library):
            why = _other_mpi(header, own)
            return FileState(path, False, why, header, code="published.other_library")
        why = f"{lapse.words}; {_other_series(header, own)}"
        return FileState(path, False, why, header, expiry=lapse, code="published.other_library")
    state = _state_by_launch(path, text, header, prober, spaces)
    if lapse is None or state.refused:
        return state
    why = f"{lapse.words}; the file: {state.why}"
    return FileState(path, state.in_force, why, header, expiry=lapse, code=state.code)


def _state_by_launch(
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


def _other_series(header: Header, own_mpi: str) -> str:
    return f"it is for {header.mpi}, but this is {own_mpi}"


def _other_mpi(header: Header, own_mpi: str) -> str:
    """A message: the MPI of the file, the MPI here, and the option that selects the right one."""
    words = _other_series(header, own_mpi)
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
        return prober.stage(fmt, text.main)
    if path != fmt.default_path(header.cluster, prober.library).absolute():
        raise NotObeyed(
            f"{fmt.name}: this library reads "
            f"{fmt.default_path(header.cluster, prober.library)}, not {path}",
            code="publish.not_obeyed",
        )
    return fmt.live(path, prober.library)


@dataclass(frozen=True)
class PublishedSetting:
    """The setting of a publication: the values of all files of one source, and the last one's path
    and header."""

    path: Path
    header: Header
    content: Content

    @property
    def evidence(self) -> Evidence:
        return self.header.evidence


def publications(states: Iterable[FileState]) -> list[PublishedSetting]:
    """The publications that can be compared: those of which no file is out of force or refused."""
    rows = [(state, state.header) for state in states if state.header is not None]
    incomplete = {header.evidence.source for state, header in rows if state.in_force is False}
    whole: dict[str, PublishedSetting] = {}
    for state, header in rows:
        source = header.evidence.source
        if source in incomplete:
            continue
        content = _as_parameters(header, state.path)
        if source in whole:
            content = whole[source].content.merge(content)
        whole[source] = PublishedSetting(state.path, header, content)
    return list(whole.values())


def _as_parameters(header: Header, path: Path) -> Content:
    """Rules are compared by the parameters that name their file, or that hold them."""
    content = header.content
    if not content.rules:
        return content
    words = dialect(header.mpi.partition(" ")[0]).variables(content.rules)
    parameters = Content(content.groups)
    for name, value in {**find(header.format).naming(str(path)), **dict(words.values())}.items():
        parameters = parameters.with_value(LIBRARY, name, value)
    return parameters
