"""The expiry of published settings: a setting is proven for one version of its MPI library.

Parameters change their meaning in any release, so another version is another library, patch
releases too.  A setting that was measured again with the installed version (``verify-published
--renew``) counts as proven with it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError
from autotune.publish.header import Header
from autotune.publish.install import read_installed
from autotune.publish.published_files import published
from runner.errors import RunnerError
from runner.files.paths import is_file, resolved
from runner.mpi.discover import LAUNCHERS, find_library, libraries
from runner.mpi.library import Library


@dataclass(frozen=True)
class Expiry:
    """An expired file: the version of its library that is proven, and the one that is installed."""

    path: Path
    family: str
    proven: str
    installed: str
    mpi: str = ""
    """The launcher of the installed library, if ``--mpi`` must name it; "" for the first found."""

    @property
    def words(self) -> str:
        """What has expired, without the path."""
        return f"expired: proven with {self.family} {self.proven}, installed is {self.installed}"

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
            "proven_with": self.proven,
            "installed": self.installed,
            "commands": self.commands,
        }


def proven_with(header: Header) -> tuple[str, str]:
    """Family and version of the library with which the setting was measured last."""
    family, _, rest = header.mpi.partition(" ")
    seen = header.evidence
    version = seen.renewed.get("mpi_version") or seen.mpi_version
    # Evidence of early versions does not name it; the file was then seen to be obeyed by this one.
    return family, str(version or rest.partition("seen with ")[2].rstrip(")"))


def expiry(path: Path, header: Header, library: Library) -> Expiry | None:
    """The expiry of a file if ``library`` is the installed one; None if it is proven with it.

    None also for a library of another family, which does not load the file.
    """
    family, version = proven_with(header)
    if library.family != family or library.version == version:
        return None
    try:
        usual = find_library().launcher
    except RunnerError:
        usual = ""
    mpi = "" if library.launcher == usual else library.launcher
    return Expiry(path, family, version, library.version, mpi)


def still_installed(header: Header, library: Library) -> bool:
    """Whether the library of the measurement seems to be in its place, beside ``library``.

    The folder is named by a file, so it is looked at, and nothing in it is started.
    """
    place = str(header.evidence.renewed.get("mpi_bin") or header.evidence.mpi_bin)
    if not place or resolved(place) == resolved(library.bin):
        return False
    return any(is_file(Path(place) / name) for name in LAUNCHERS)


@dataclass(frozen=True)
class PublishedFile:
    """A published file of this user; ``expiry`` is None if it has not expired or is not judged."""

    path: Path
    header: Header
    expiry: Expiry | None


def published_files(chosen: Library | None = None) -> tuple[list[PublishedFile], list[str]]:
    """The user's published files, and what is wrong with unreadable ones as sentences.

    ``chosen`` is the library that counts for its family.  Of any other family it is the first
    installation found; for a file of another series it is one of that series, if there is one.  A
    file whose library is not found at all is not judged.
    """
    found: list[PublishedFile] = []
    problems: list[str] = []
    try:
        paths = published()
    except AutotuneError as problem:
        return [], [str(problem)]
    libraries_here = _libraries(chosen) if paths else []
    for path in paths:
        try:
            text = read_installed(path)
            header = None if text is None else text.header
        except AutotuneError as problem:
            problems.append(f"{path}: {problem}")
            continue
        if header is None:
            continue
        library = _installed(header, libraries_here)
        gone = None if library is None else expiry(path, header, library)
        found.append(PublishedFile(path, header, gone))
    return found, problems


def expired_files(chosen: Library | None = None) -> list[Expiry]:
    """The expired ones of :func:`published_files`."""
    return [one.expiry for one in published_files(chosen)[0] if one.expiry is not None]


def _libraries(chosen: Library | None) -> list[Library]:
    """The libraries that are found here, the one that a command uses first."""
    if chosen is None:
        try:
            chosen = find_library()
        except RunnerError:
            return []
    return [chosen, *libraries()]


def _installed(header: Header, found: Sequence[Library]) -> Library | None:
    """The library that loads the file here."""
    family, version = proven_with(header)
    own = [one for one in found if one.family == family]
    same = (one for one in own if _series(one.version) == _series(version))
    return next(same, own[0] if own else None)


def _series(version: str) -> list[str]:
    return version.split(".")[:2]
