"""The artifact store: results as JSON files, one each (class-wide settings, tables of collectives).

The files are in ``$XDG_DATA_HOME/autotune/NAME``. They are small, rarely created, and copied
between machines by people. So each file says what it is, and its id reveals changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from autotune.errors import UsageError
from autotune.notes import Note, Say, unheard
from runner import files
from runner.files import MIB, read_text
from runner.files.json_text import parse_json
from runner.files.private_files import write_private

_ID = re.compile(r"[0-9a-f]{4,16}")
_LARGEST = 64 * MIB


class Artifact(Protocol):
    """A result that the store can save; its ``to_json`` includes ``schema`` and ``id``."""

    @property
    def id(self) -> str: ...
    @property
    def cluster(self) -> str: ...
    @property
    def date(self) -> str: ...
    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Artifact)


def content_id(content: dict[str, Any]) -> str:
    """12 hexadecimal digits of a hash over the whole content: the ID of ``classwide:ID``."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class ArtifactStore(Generic[R]):
    """The results of one kind.

    ``name`` is the name of the folder, of the command ``autotune NAME`` that produces these
    results, and of ``NAME:ID``. ``what`` names one result in messages. ``parse`` makes a result
    from JSON types without schema and id; for damaged data it may raise KeyError, TypeError,
    ValueError, AttributeError or RecursionError.
    """

    name: str
    what: str
    schema: str
    parse: Callable[[dict[str, Any]], R]

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return files.data(self.name)

    def save(self, result: R, folder: Path | None = None) -> Path:
        """Write the result, whole or not at all; raises UsageError if this is impossible."""
        path = (folder or self.folder) / f"{result.id}.json"
        try:
            write_private(path, json.dumps(result.to_json(), indent=2) + "\n")
        except OSError as problem:
            raise UsageError(
                f"cannot write {path}: {problem.strerror}", code="file.unwritable"
            ) from None
        return path

    def from_json(self, data: Any, origin: str) -> R:
        """Inverse of ``to_json``; ``origin`` names the file in messages.

        Raises UsageError for another schema, a missing or unknown key, or a changed content.
        """
        if not isinstance(data, dict) or data.get("schema") != self.schema:
            schema = data.get("schema") if isinstance(data, dict) else None
            raise UsageError(
                f"{origin}: schema is {schema!r}, expected {self.schema!r}: this is not a "
                f"{self.what}, or one of another version of autotune; make it again with "
                f"autotune {self.name}",
                code="artifact.version",
            )
        try:
            result = self.parse({k: v for k, v in data.items() if k not in ("schema", "id")})
            own = result.id
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise UsageError(
                f"{origin}: damaged or incomplete ({problem}); make it again with autotune "
                f"{self.name}",
                code="artifact.damaged",
            ) from None
        if data.get("id") != own:
            raise UsageError(
                f"{origin}: its content does not match its id {data.get('id')!r}: it was "
                f"edited or cut off; make it again with autotune {self.name}",
                code="artifact.edited",
            )
        return result

    def read(self, path: Path) -> R:
        """The result in a file; raises UsageError if the file is unreadable or damaged."""
        try:
            data = parse_json(read_text(path, _LARGEST))
        except (OSError, ValueError) as problem:
            raise UsageError(
                f"cannot read the {self.what} {path}: {problem}", code="artifact.unreadable"
            ) from None
        return self.from_json(data, str(path))

    def find(self, prefix: str, folder: Path | None = None) -> R:
        """The result whose id begins with ``prefix`` (at least 4 hexadecimal digits).

        Raises UsageError, with the known ids, if no result or more than one has such an id.
        """
        place = folder or self.folder
        if not _ID.fullmatch(prefix):
            raise UsageError(
                f"{self.name}:{prefix} is not an id of a {self.what}; expected the first 4 to "
                f"12 digits of an id that autotune {self.name} printed (stored in {place})",
                code="artifact.id_syntax",
            )
        paths = sorted(place.glob("*.json"))
        fitting = [path for path in paths if path.stem.startswith(prefix)]
        if len(fitting) != 1:
            words = "no id begins so" if not fitting else f"{len(fitting)} ids begin so"
            have = ", ".join(path.stem for path in paths[-8:]) or "none yet"
            raise UsageError(
                f"{self.name}:{prefix}: {words} in {place}; known ids: {have}",
                code="artifact.unknown",
            )
        return self.read(fitting[0])

    def latest(
        self,
        cluster: str,
        folder: Path | None = None,
        fits: Callable[[R], bool] = lambda result: True,
        say: Say = unheard,
    ) -> R | None:
        """The newest result for a cluster for which ``fits`` is true; None if there is none."""
        return next(iter(self.of_cluster(cluster, folder, fits, say)), None)

    def of_cluster(
        self,
        cluster: str,
        folder: Path | None = None,
        fits: Callable[[R], bool] = lambda result: True,
        say: Say = unheard,
    ) -> list[R]:
        """All results for a cluster for which ``fits`` is true, the newest first.

        ``say`` gets a note on each file that is left out because it cannot be read: nobody knows
        for which cluster it is.
        """
        results = []
        for path in sorted((folder or self.folder).glob("*.json")):
            try:
                results.append(self.read(path))
            except UsageError as problem:
                data = {"file": str(path), "code": problem.code}
                say(Note("artifact.left_out", f"left out: {problem}", data))
        fitting = [r for r in results if r.cluster == cluster and fits(r)]
        return sorted(fitting, key=lambda r: (r.date, r.id), reverse=True)
