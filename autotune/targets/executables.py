"""Executables: the files that the ranks of a program ran, and whether they are still the same.

A program behind a wrapper (``sh run.sh``, ``bash -c``) is not among the words of the command line,
and neither are the libraries that it loads. So the files that the ranks ran are noted with their
digests: executables, libraries of the program's own, and Python sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from autotune.errors import WorkError
from autotune.targets.program_identity import (
    StartedSource,
    code_hash,
    entries,
    leaves_out_cwd,
    sources,
)
from autotune.targets.rows import ExecutableRow, Kind
from runner import files
from runner.executables import file_digest
from runner.types import Executable, ExecutablePlace, RunRecord

PROGRAM: Literal["program"] = "program"
SOURCE: Literal["source"] = "source"
KINDS: tuple[str, ...] = get_args(Kind)
HERE, REMOVED = "here", "removed"
PLACES: tuple[str, ...] = get_args(ExecutablePlace)
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "env"})
_MOST_CHANGES = 3
_LARGEST = 1 << 50
_LONGEST_NAME = 200
_LONGEST = 1 << 16


@dataclass(frozen=True)
class ExecutableFile:
    """A file that ranks ran, with the SHA-256 (hexadecimal) of what ran.

    ``place`` is that of :class:`runner.types.Executable`: only a file that is ``here`` can be
    compared without a run. ``kind`` is ``program``, ``library`` or ``source``. The digest of a
    Python source is over its code and that of the modules that it imports
    (:mod:`autotune.targets.program_identity`).
    ``words`` and ``cwd`` say how the file was started, as far as that names it: a later search may
    find another file by the same words (a changed link or PATH).
    """

    path: str
    sha256: str
    kind: Kind = PROGRAM
    place: str = HERE
    words: tuple[str, ...] = ()
    cwd: str = ""

    def to_json(self) -> dict[str, Any]:
        """The stored form, in JSON types."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "kind": self.kind,
            "place": self.place,
            "words": list(self.words),
            "cwd": self.cwd,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExecutableFile:
        """Inverse of :meth:`to_json`; raises WorkError for anything else."""
        try:
            words = tuple(data["words"])
            file = cls(**{**data, "words": words})
            texts = (file.path, file.sha256, file.cwd, *words)
            if (
                file.kind in KINDS
                and file.place in PLACES
                and all(
                    isinstance(text, str) and "\0" not in text and len(text) < _LONGEST
                    for text in texts
                )
            ):
                return file
        except (LookupError, TypeError):
            pass
        raise _damage_error(data)

    @property
    def row(self) -> ExecutableRow:
        """The published form."""
        return ExecutableRow(path=self.path, sha256=self.sha256, kind=self.kind)

    def now(self) -> tuple[str, str]:
        """Path and digest of the file that would be run now; an empty digest if there is none."""
        if self.kind == SOURCE:
            source = next(_source_entries(self.words, self.cwd), None)
            return (self.path, "") if source is None else (str(source.path), _source_digest(source))
        path = self.path
        if self.words:
            path = _resolve_word(self.words[0], self.cwd) or path
        return path, file_digest(path) or ""

    def change(self) -> ExecutableChange | None:
        """What has changed since it was noted; None if the same content would be run, or if that
        cannot be told."""
        if self.place != HERE:
            return None
        path, digest = self.now()
        if digest == self.sha256 and digest:
            return None
        return ExecutableChange(self.path, self.sha256, path, digest)


@dataclass(frozen=True)
class ExecutableChange:
    """A file that is not what was measured; ``now_path`` would be run in its place.

    ``now_sha256`` is "" if there is no such file any more.
    """

    path: str
    sha256: str
    now_path: str
    now_sha256: str

    @property
    def words(self) -> str:
        """The change, as the end of a sentence."""
        if not self.now_sha256:
            return f"{self.path} does not exist any more, or cannot be read"
        if self.now_path != self.path:
            return f"{self.now_path} would be run in place of {self.path}"
        return f"{self.path} has changed"

    def to_json(self) -> dict[str, str]:
        """The published and stored form."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "now_path": self.now_path,
            "now_sha256": self.now_sha256,
        }

    @classmethod
    def from_json(cls, data: Any) -> ExecutableChange:
        """Inverse of :meth:`to_json`; raises WorkError for anything else."""
        try:
            change = cls(**data)
            if all(isinstance(text, str) for text in vars(change).values()):
                return change
        except TypeError:
            pass
        raise _damage_error(data)


def _damage_error(data: object) -> WorkError:
    return WorkError(
        f"an executable of a study is damaged in the results database ({data!r:.200}): "
        "somebody else wrote to it. Restore a copy from before, or use another database (--store)",
        code="study.damaged",
    )


def executables_of(record: RunRecord, program: Sequence[str]) -> list[ExecutableFile]:
    """The files that a run of ``program`` (words of the command line) ran, as far as seen."""
    files_by_identity: dict[tuple[str, str], ExecutableFile] = {}
    for one in record.executables:
        if one.kind == PROGRAM:
            files_by_identity |= {(file.path, file.sha256): file for file in _sources(one, program)}
        words = _words(one) if one.place == HERE else ()
        file = ExecutableFile(one.path, one.sha256, one.kind, one.place, words, one.cwd)
        files_by_identity[one.path, one.sha256] = file
    return [files_by_identity[key] for key in sorted(files_by_identity)]


def is_wrapped(program: Sequence[str], cwd: str) -> bool:
    """Whether a command line starts a shell or a script of one, which starts the program."""
    place = _resolve_word(program[0], cwd)
    if place is None or Path(program[0]).name in _SHELLS:
        return place is not None
    try:
        with files.open_regular(place, _LARGEST) as file:
            first = file.readline(_LONGEST_NAME)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" not in first


def changes_of(files: Iterable[ExecutableFile]) -> list[ExecutableChange]:
    """Which of the files are not what was measured."""
    return [change for file in files if (change := file.change()) is not None]


def change_words(changes: Sequence[ExecutableChange]) -> str:
    """The changes in one sentence without its end; long lists are cut."""
    text = "; ".join(change.words for change in changes[:_MOST_CHANGES])
    more = len(changes) - _MOST_CHANGES
    return f"{text}; and {more} more" if more > 0 else text


def _words(one: Executable) -> tuple[str, ...]:
    """The word that names the executable; none if it does not lead to it from here."""
    first = one.argv[:1]
    return first if first and _resolve_word(first[0], one.cwd) == one.path else ()


def _resolve_word(word: str, cwd: str) -> str | None:
    """The file that a shell in ``cwd`` finds by this word, without links; None if there is none."""
    place = os.path.join(cwd, word) if "/" in word else shutil.which(word)  # noqa: PTH118
    return None if place is None else os.path.realpath(place)


def _sources(one: Executable, program: Sequence[str]) -> Iterator[ExecutableFile]:
    """The Python sources that a rank started, if the command line does not name them."""
    if one.argv[1:] == tuple(program[1:]):
        return  # The study's key covers them.
    paths = {entry.path for entry in entries(one.argv, one.cwd)}
    for at, word in enumerate(one.argv[1:], 1):
        module: tuple[str, ...] = ()
        if at > 1 and one.argv[at - 1] == "-m":
            module = ("-P", "-m") if leaves_out_cwd(one.argv[: at - 1]) else ("-m",)
        words = (one.argv[0], *module, word)
        for entry in _source_entries(words, one.cwd):
            if entry.path in paths:
                path, digest = str(entry.path), _source_digest(entry)
                yield ExecutableFile(path, digest, SOURCE, HERE, words, one.cwd)


def _source_entries(words: Sequence[str], cwd: str) -> Iterator[StartedSource]:
    return iter(entries(words, cwd)) if len(words) > 1 else iter(())


def _source_digest(entry: StartedSource) -> str:
    digest = hashlib.sha256()
    try:
        for name, path in sources(entry).items():
            digest.update(f"{name}\0{code_hash(path)}\n".encode())
    except OSError:
        return ""
    return digest.hexdigest()
