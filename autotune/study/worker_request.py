"""What a worker of a study begins with: the words of ``search``, and where they are said.

They come from the results database, so they are data until somebody is known to have meant them
(``autotune.study.trust``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from autotune.errors import UsageError
from autotune.store.text import canonical

SCHEMA = "autotune-requests-2"
MOST_REQUESTS = 32
"""Requests of a study that are kept: the newest of each key."""
MOST_WORDS = 10_000
MOST_CHARACTERS = 1 << 20
_PURPOSE = "autotune worker request 1"
_VALUED = frozenset(
    {
        *("--app", "--input", "--ranks", "--cluster", "--mpi", "--metric", "--verify", "--timeout"),
        *("--metric-choice", "--stdin"),
        *("--space", "--strategy", "--preset", "--seed", "--trials", "--min-gain", "--budget"),
        *("--runs", "--features", "--params-file", "-O"),
    }
)
_FLAGS = frozenset({"--clean-env", "--remeasure", "--no-guard"})


@dataclass(frozen=True)
class WorkerRequest:
    """A command line of ``search`` without the word itself, and its working directory.

    ``key`` names the key with which it was signed; empty for a request of before there were keys.
    Raises UsageError for words that no request has.
    """

    argv: tuple[str, ...]
    cwd: str
    key: str = ""
    signature: str = ""

    def __post_init__(self) -> None:
        words = (*self.argv, self.cwd)
        if len(words) > MOST_WORDS or sum(map(len, words)) > MOST_CHARACTERS:
            raise UsageError(
                f"a worker's request has {len(words)} words; expected {MOST_WORDS} at most, and "
                f"{MOST_CHARACTERS} characters"
            )
        if any("\0" in word for word in words):
            raise UsageError("a worker's request has a NUL in a word")
        if not PurePosixPath(self.cwd).is_absolute():
            raise UsageError(f"a worker's request is for {self.cwd[:200]!r}, no absolute path")
        given = iter(self.options)
        for word in given:
            if word in _VALUED:
                if next(given, None) is None:
                    raise UsageError(f"a worker's request ends with {word}, its value is missing")
            elif word not in _FLAGS:
                raise UsageError(
                    f"a worker's request holds {word[:80]!r}, which no request has; autotune "
                    "search --join writes one that can be used"
                )

    @property
    def options(self) -> tuple[str, ...]:
        """The words before the program's."""
        return self.argv[: self.argv.index("--")] if "--" in self.argv else self.argv

    @property
    def program(self) -> tuple[str, ...]:
        """The program's words; none where the request names an application."""
        return self.argv[len(self.options) + 1 :]

    def with_options(self, more: Sequence[str]) -> list[str]:
        """The words of ``search`` with further options before the program's."""
        program = ["--", *self.program] if "--" in self.argv else []
        return ["search", *self.options, *more, *program]

    def signed_text(self, study: str) -> bytes:
        """What is signed: everything that is carried out, and the hash of its study."""
        content = {"argv": list(self.argv), "cwd": self.cwd, "for": _PURPOSE, "study": study}
        return canonical(content).encode("ascii")

    def to_json(self) -> dict[str, Any]:
        return {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "key": self.key,
            "signature": self.signature,
        }


def requests_of(data: Mapping[str, Any] | None) -> list[WorkerRequest]:
    """The requests that a study holds, the newest last; raises UsageError for damaged ones."""
    if data is None:
        return []
    listed = data.get("requests") if data.get("schema") == SCHEMA else [data]
    if not isinstance(listed, list) or len(listed) > MOST_REQUESTS:
        raise UsageError(
            "the study's requests are no list of them: the results database is damaged"
        )
    return [_request(item) for item in listed]


def _request(data: Any) -> WorkerRequest:
    if not isinstance(data, dict):
        raise UsageError("a worker's request is no object: the results database is damaged")
    argv = data.get("argv")
    texts = [data.get("cwd"), data.get("key", ""), data.get("signature", "")]
    if not isinstance(argv, list) or not all(isinstance(t, str) for t in [*argv, *texts]):
        raise UsageError("a worker's request is damaged: its words are no texts")
    cwd, key, signature = map(str, texts)
    return WorkerRequest(tuple(argv), cwd, key, signature)


def added(data: Mapping[str, Any] | None, request: WorkerRequest) -> dict[str, Any]:
    """What a study holds with one more request, which replaces the one of the same key."""
    try:
        before = requests_of(data)
    except UsageError:
        before = []  # Nobody could use them.
    others = [one for one in before if one.key != request.key][1 - MOST_REQUESTS :]
    return {"schema": SCHEMA, "requests": [one.to_json() for one in (*others, request)]}
