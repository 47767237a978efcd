"""Workers' requests: a search and the directory in which a worker carries it out.

They come from the results database, so they are data until their author is known
(``autotune.workers.worker_trust``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from autotune.errors import UsageError
from autotune.store.text import canonical
from autotune.study.study_request import SearchRequest

REQUESTS_SCHEMA = "autotune-requests-1"
MOST_REQUESTS = 32
"""Largest number of requests that a study stores; of each key the newest is stored."""
MOST_CHARACTERS = 1 << 20
_PURPOSE = "autotune worker request 1"
WHERE = "a worker's request"


@dataclass(frozen=True)
class WorkerRequest:
    """A search and its working directory.

    ``key`` names the key with which the request was signed; it is empty if nobody signed it.
    Raises UsageError for a relative directory, too much text, or a NUL.
    """

    search: SearchRequest
    cwd: str
    key: str = ""
    signature: str = ""

    def __post_init__(self) -> None:
        if not PurePosixPath(self.cwd).is_absolute():
            raise UsageError(
                f"{WHERE} has the directory {self.cwd[:200]!r}; expected an absolute path",
                code="request.refused",
            )
        content = canonical([self.search.to_json(), self.cwd])
        if len(content) > MOST_CHARACTERS:
            raise UsageError(
                f"{WHERE} has {len(content)} characters; expected {MOST_CHARACTERS} at most",
                code="request.refused",
            )
        if "\\u0000" in content:
            raise UsageError(f"{WHERE} has a NUL in a word", code="request.refused")

    def signed_text(self, study: str) -> bytes:
        """The signed bytes: everything that is carried out, and the hash of its study."""
        search = self.search.to_json()
        content = {"cwd": self.cwd, "study": study, "search": search, "for": _PURPOSE}
        return canonical(content).encode("ascii")

    def to_json(self) -> dict[str, Any]:
        search = self.search.to_json()
        return {"search": search, "cwd": self.cwd, "key": self.key, "signature": self.signature}


def requests_of(data: Mapping[str, Any] | None) -> list[WorkerRequest]:
    """The requests that a study holds, the newest last; raises UsageError for damaged ones."""
    if data is None:
        return []
    if data.get("schema") != REQUESTS_SCHEMA:
        raise UsageError(
            f"{WHERE}: the schema is {str(data.get('schema'))[:80]!r}; expected "
            f"{REQUESTS_SCHEMA!r}: it was written by another version of autotune, or is damaged",
            code="request.version",
        )
    requests = data.get("requests")
    if not isinstance(requests, list) or len(requests) > MOST_REQUESTS:
        raise UsageError(
            "the study's requests are not a list: the results database is damaged",
            code="request.damaged",
        )
    return [_request(item) for item in requests]


def _request(data: Any) -> WorkerRequest:
    if not isinstance(data, dict):
        raise UsageError(
            f"{WHERE} is not an object: the results database is damaged", code="request.damaged"
        )
    search = data.get("search")
    texts = [data.get(name) for name in ("cwd", "key", "signature")]
    if not isinstance(search, dict) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"{WHERE} is damaged: expected a search, and a directory, key and signature that are "
            "texts",
            code="request.damaged",
        )
    return WorkerRequest(SearchRequest.from_json(search, WHERE), *map(str, texts))


def with_request(data: Mapping[str, Any] | None, request: WorkerRequest) -> dict[str, Any]:
    """The requests of a study with one more, which replaces the one with the same key."""
    try:
        before = requests_of(data)
    except UsageError:
        before = []  # The stored requests cannot be used.
    others = [one for one in before if one.key != request.key][1 - MOST_REQUESTS :]
    return {"schema": REQUESTS_SCHEMA, "requests": [one.to_json() for one in (*others, request)]}
