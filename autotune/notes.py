"""Notes: what a user should know beside the figures; warnings of results are notes, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.lock import LockNews


@dataclass(frozen=True)
class Note:
    """A message that is given once.

    ``words`` is the message as a sentence.  ``data`` has its figures, in JSON types.
    """

    code: str
    """``AREA.FACT``, in lower case, and stable: scripts and tests ask for it.

    docs/reference/codes.md lists all.
    """
    words: str
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """The published form, in JSON types."""
        return {"code": self.code, "words": self.words, "data": dict(self.data)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Note:
        """Inverse of :meth:`to_json`; raises LookupError, TypeError or ValueError for damage."""
        code, words, figures = data["code"], data["words"], dict(data["data"])
        if not (isinstance(code, str) and isinstance(words, str)):
            raise TypeError("a note's code and words are text")
        return cls(code, words, figures)


Say = Callable[[Note], None]
"""Receives the notes of a piece of work, each as soon as it is known."""


def lock_notes(say: Say) -> Callable[[LockNews], None]:
    """Turns the news of :class:`~runner.lock.MachineLock` into notes for ``say``."""
    return lambda news: say(Note(news.code, news.words, news.data))


def once(say: Say) -> Say:
    """Says each note only the first time, for work that looks several programs up."""
    sentences: set[str] = set()

    def say_new(note: Note) -> None:
        if note.words not in sentences:
            sentences.add(note.words)
            say(note)

    return say_new


def unheard(note: Note) -> None:
    """Discards the note."""
