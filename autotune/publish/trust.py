"""Trust in published files: only a file that autotune itself would write, word for word, is loaded.

A checksum in a header detects an accident, not an attack, because anybody can compute it.  So the
header is read as data, its names and values are checked, and the file is rendered again from them.
A shell, an interpreter or a library loads the file only if it equals this text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.errors import AutotuneError, UsageError
from autotune.publish.content import GROUPS, TABLES, Content
from autotune.publish.formats import find
from autotune.publish.formats.rules import RulesV1
from autotune.publish.header import BEGIN, CLOSE, Header, split_published, unsealed
from autotune.publish.install import Text, check_owner, read_installed, side_of
from autotune.publish.plan import compose, series
from autotune.space.trust import Names, check_groups
from runner.mpi.library import Library

_SEEN = re.compile(r"\(seen with ([0-9][0-9A-Za-z.]{0,40})\)$")
_SHOWN, _BEFORE = 100, 20
"""Characters of a line that are shown, and those of them before the first difference."""
_END = "nothing of it is executed.\nIf it is yours, publish it again."


@dataclass(frozen=True)
class Trust:
    """The library that would load files, and the names of the spaces known here."""

    library: Library
    known: Names

    def check(self, path: Path, text: Text, header: Header) -> None:
        """Raise UsageError, with the name or line, unless the file may be loaded."""
        check_owner(path)
        if text.side is not None:
            check_owner(side_of(path))
        self.check_content(header.content, str(path))
        self._check_text(path, text, header)

    def check_content(self, content: Content, origin: str) -> None:
        """Raise UsageError unless all names and values may come from a file."""
        if strange := sorted(set(content.groups) - set(GROUPS)):
            raise UsageError(
                f"{origin}: has values for {', '.join(strange)}; expected {', '.join(GROUPS)}",
                code="published.untrusted",
            )
        tables = {name: list(self._tables(content, name, origin)) for name in TABLES}
        check_groups(content.groups, self.known, origin, tables)

    def _tables(self, content: Content, name: str, origin: str) -> Iterator[str]:
        """The rules tables that the content names, as paths; raises UsageError for a file that
        autotune did not publish."""
        for path in {v[name] for g, v in content.groups.items() if g == "mca" and name in v}:
            try:
                self._check_table(Path(path))
            except AutotuneError as problem:
                raise UsageError(
                    f"{origin}: {name} names a file: {problem}", code="published.untrusted"
                ) from None
            yield path

    def _check_table(self, path: Path) -> None:
        text = read_installed(path) if path.is_absolute() else None
        header = None if text is None else text.header
        if text is None or header is None or not isinstance(find(header.format), RulesV1):
            raise UsageError(
                f"{path} is not a table of rules that autotune published",
                code="published.untrusted",
            )
        if header.content.groups:
            raise UsageError(f"{path} contains more than rules", code="published.untrusted")
        if text.edited:
            raise UsageError(f"{path} was edited after it was published", code="published.edited")
        self.check(path, text, header)

    def _check_text(self, path: Path, text: Text, header: Header) -> None:
        found = difference(path, text, header, self.library)
        if found is not None:
            raise UsageError(f"{found}: {_END}", code="published.untrusted")


def difference(path: Path, text: Text, header: Header, library: Library) -> str | None:
    """Where a published file differs from what autotune would write, in words; None if it does not.

    If lines of others stay in the file, only the published block is compared.  ``library`` is of
    the family that the file is for.  Raises UsageError if autotune could not write such a file.
    """
    fmt = find(header.format)
    given, first = text.main, 1
    if fmt.merges:
        parts = split_published(text.main)
        if parts is None:
            return (
                f"{path}: the two marks around what autotune published ({BEGIN!r}, {CLOSE!r}) "
                "are missing, or there are several"
            )
        given, first = parts.block, 1 + parts.before.count("\n")
    library = _as_published(path, header, library)
    try:
        own = compose(fmt, header, header.content, "", library)
    except UsageError as problem:
        raise UsageError(
            f"{path}: autotune would not write such a file: {problem}", code="published.untrusted"
        ) from None
    if given != own.main:
        return f"{path}: {_line(given, own.main, first)}"
    # The file itself comes first, because readers see its lines; then the file beside it.
    if (text.side or "") != (own.side or ""):
        return f"{side_of(path)}: {_line(text.side or '', own.side or '', 1)}"
    return None


def _as_published(path: Path, header: Header, library: Library) -> Library:
    """The library with the version of the publication, for the text; raises UsageError."""
    found = _SEEN.search(header.mpi)
    if found is not None:
        then = replace(library, version=found[1])
        if series(then) == header.mpi:
            return then
    raise UsageError(
        f"{path}: is for {header.mpi!r}; expected words such as {series(library)!r}",
        code="published.other_library",
    )


def _line(given: str, ours: str, first: int) -> str:
    """The line that differs from autotune's own; ``first`` is the number of the first line."""
    theirs, expected = unsealed(given).split("\n"), unsealed(ours).split("\n")
    for number, line in enumerate(theirs):
        own = expected[number] if number < len(expected) else ""
        if line != own:
            same = itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(line, own, strict=False)
            )
            long = max(len(line), len(own)) > _SHOWN
            begin = max(0, sum(1 for _ in same) - _BEFORE) if long else 0
            words = f"{own[begin : begin + _SHOWN]!a}" if own else "nothing"
            column = f", from column {begin + 1} on," if begin else ""
            return (
                f"line {first + number}{column} is {line[begin : begin + _SHOWN]!a}, where "
                f"autotune would write {words}"
            )
    missing = expected[len(theirs) :] or ["the same text with another checksum"]
    return f"ends where autotune would write {missing[0][:_SHOWN]!a}"
