"""What a worker of a study begins with: a search as it was asked for, and in which directory.

They come from the results database, so they are data until somebody is known to have meant them
(``autotune.study.trust``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from autotune.errors import UsageError
from autotune.store.text import canonical
from autotune.study.duration import parse_duration
from autotune.study.search_request import SearchRequest

SCHEMA = "autotune-requests-3"
_READ = (SCHEMA, "autotune-requests-2")
MOST_REQUESTS = 32
"""Requests of a study that are kept: the newest of each key."""
MOST_CHARACTERS = 1 << 20
_PURPOSE = "autotune worker request 2"
_PURPOSE_OF_WORDS = "autotune worker request 1"
WHERE = "a worker's request"


@dataclass(frozen=True)
class WorkerRequest:
    """A search and its working directory.

    ``key`` names the key with which it was signed; empty for a request of before there were keys.
    ``argv`` are the words of a request of before there were documents: they are what was signed.
    Raises UsageError for what no request can be.
    """

    search: SearchRequest
    cwd: str
    key: str = ""
    signature: str = ""
    argv: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not PurePosixPath(self.cwd).is_absolute():
            raise UsageError(
                f"{WHERE} has the directory {self.cwd[:200]!r}; expected an absolute path"
            )
        content = canonical([self.search.to_json(), list(self.argv or ()), self.cwd])
        if len(content) > MOST_CHARACTERS:
            raise UsageError(
                f"{WHERE} has {len(content)} characters; expected {MOST_CHARACTERS} at most"
            )
        if "\\u0000" in content:
            raise UsageError(f"{WHERE} has a NUL in a word")

    @classmethod
    def of_words(
        cls, argv: tuple[str, ...], cwd: str, key: str = "", signature: str = ""
    ) -> WorkerRequest:
        """A request of before there were documents: the words of ``search``.

        Raises UsageError for words that no request has.
        """
        return cls(search_of_words(argv), cwd, key, signature, argv)

    def signed_text(self, study: str) -> bytes:
        """What is signed: everything that is carried out, and the hash of its study."""
        content: dict[str, Any] = {"cwd": self.cwd, "study": study}
        if self.argv is None:
            content |= {"search": self.search.to_json(), "for": _PURPOSE}
        else:
            content |= {"argv": list(self.argv), "for": _PURPOSE_OF_WORDS}
        return canonical(content).encode("ascii")

    def to_json(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"search": self.search.to_json()}
        if self.argv is not None:
            asked = {"argv": list(self.argv)}
        return {**asked, "cwd": self.cwd, "key": self.key, "signature": self.signature}


def requests_of(data: Mapping[str, Any] | None) -> list[WorkerRequest]:
    """The requests that a study holds, the newest last; raises UsageError for damaged ones."""
    if data is None:
        return []
    listed = data.get("requests") if data.get("schema") in _READ else [data]
    if not isinstance(listed, list) or len(listed) > MOST_REQUESTS:
        raise UsageError("the study's requests are not a list: the results database is damaged")
    return [_request(item) for item in listed]


def _request(data: Any) -> WorkerRequest:
    if not isinstance(data, dict):
        raise UsageError(f"{WHERE} is not an object: the results database is damaged")
    texts = [data.get("cwd"), data.get("key", ""), data.get("signature", "")]
    search, argv = data.get("search"), data.get("argv")
    words = isinstance(argv, list) and all(isinstance(word, str) for word in argv)
    if not all(isinstance(t, str) for t in texts) or not (words or isinstance(search, dict)):
        raise UsageError(f"{WHERE} is damaged: its words are not texts")
    cwd, key, signature = map(str, texts)
    if isinstance(search, dict):
        return WorkerRequest(SearchRequest.from_json(search, WHERE), cwd, key, signature)
    return WorkerRequest.of_words(tuple(argv or ()), cwd, key, signature)


def added(data: Mapping[str, Any] | None, request: WorkerRequest) -> dict[str, Any]:
    """What a study holds with one more request, which replaces the one of the same key."""
    try:
        before = requests_of(data)
    except UsageError:
        before = []  # Nobody could use them.
    others = [one for one in before if one.key != request.key][1 - MOST_REQUESTS :]
    return {"schema": SCHEMA, "requests": [one.to_json() for one in (*others, request)]}


_OF_TARGET = frozenset(
    {
        *("--app", "--input", "--ranks", "--cluster", "--mpi", "--metric", "--verify"),
        *("--metric-choice", "--stdin", "--timeout"),
    }
)
_OF_SEARCH = {
    "--space": "space",
    "--strategy": "strategy",
    "--preset": "preset",
    "--seed": "seed",
    "--trials": "trials",
    "--runs": "max_runs",
    "--features": "features",
    "--params-file": "params_file",
}
_FLAGS = {"--remeasure": {"remeasure": True}, "--no-guard": {"guard": False}}


def search_of_words(argv: tuple[str, ...]) -> SearchRequest:
    """The search that a command line of before there were documents asks for."""
    end = argv.index("--") if "--" in argv else len(argv)
    target: dict[str, Any] = {"program": list(argv[end + 1 :])} if argv[end + 1 :] else {}
    data: dict[str, Any] = {}
    options: dict[str, str] = {}
    given = iter(argv[:end])
    for word in given:
        if word == "--clean-env":
            target["clean_env"] = True
        elif word in _FLAGS:
            data |= _FLAGS[word]
        elif word in _OF_TARGET:
            target[word[2:].replace("-", "_")] = _value(word, given)
        elif word in _OF_SEARCH:
            data[_OF_SEARCH[word]] = _value(word, given)
        elif word == "--budget":
            data["budget_s"] = parse_duration(_value(word, given))
        elif word == "--min-gain":
            data["min_gain"] = _percent(_value(word, given))
        elif word == "-O":
            name, _, value = _value(word, given).partition("=")
            options[name] = value
        else:
            raise UsageError(
                f"{WHERE} has {word[:80]!r}, which is not allowed in a request; autotune "
                "search --join writes one that can be used"
            )
    return SearchRequest.of(WHERE, **data, target=target, options=options)


def _value(word: str, given: Iterator[str]) -> str:
    value = next(given, None)
    if value is None:
        raise UsageError(f"{WHERE} ends with {word}; its value is missing")
    return value


def _percent(text: str) -> float:
    try:
        return float(text) / 100
    except ValueError:
        raise UsageError(f"{WHERE} holds --min-gain {text[:40]!r}; expected a number") from None
