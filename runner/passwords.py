"""Passwords in URLs of databases: they are removed from shown or stored command lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IN_URL = re.compile(r"(?<=://)([^/@:\s]*):\S*(?=@)")
_IN_DATABASE = re.compile(r"(?i)(postgres[a-z0-9+]*://[^/@:\s]*):.*(?=@)")
_IN_WORD = re.compile(r"(?<=://)([^/@:]*):.*(?=@)", re.DOTALL)
_IN_QUERY = re.compile(r"(?i)(password=)[^&\s]+")


def mask_password(text: str) -> str:
    """The ``text`` without the passwords of the URLs in it.

    A password may hold ``@``: everything up to the last one in a word, or in a line after a
    database URL, is removed.
    """
    text = _IN_DATABASE.sub(r"\1:***", text)
    return _IN_QUERY.sub(r"\1***", _IN_URL.sub(r"\1:***", text))


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line without passwords; a word may hold blanks."""
    return [mask_password(_IN_WORD.sub(r"\1:***", word)) for word in words]


def has_password(word: str) -> bool:
    """True if a word is a URL with a password."""
    return mask_words([word]) != [word]
