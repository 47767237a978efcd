"""Passwords in URLs of databases: what is shown or stored of a command line is without them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IN_URL = re.compile(r"(?<=://)([^/@:\s]*):\S*(?=@)")
_IN_DATABASE = re.compile(r"(?i)(postgres[a-z0-9+]*://[^/@:\s]*):.*(?=@)")
_IN_WORD = re.compile(r"(?<=://)([^/@:]*):.*(?=@)", re.DOTALL)
_IN_QUERY = re.compile(r"(?i)(password=)[^&\s]+")


def mask_password(text: str) -> str:
    """The ``text`` without the passwords of the URLs in it.

    A password may hold ``@``: all up to the last one of a word, or of a line behind the URL of a
    database, is left out.
    """
    text = _IN_DATABASE.sub(r"\1:***", text)
    return _IN_QUERY.sub(r"\1***", _IN_URL.sub(r"\1:***", text))


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line without passwords; a word is one text, which may hold blanks."""
    return [mask_password(_IN_WORD.sub(r"\1:***", word)) for word in words]


def has_password(word: str) -> bool:
    """Whether a word is a URL with a password."""
    return mask_words([word]) != [word]
