"""The text of published files, and trust: only what autotune would write, word for word, is loaded.

The header is read as data, and the file is rendered again from it.  A file that differs from this
text was edited; no other test is needed, and a checksum alone proves nothing, because anybody can
compute it.  A shell, an interpreter or a library loads a file only if it is this text and its names
and values may come from outside.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.config.cluster import known_family
from autotune.errors import AutotuneError, UsageError
from autotune.publish.block import BEGIN, CLOSE, split_block
from autotune.publish.content import GROUPS, TABLES, Content
from autotune.publish.formats import Format, find
from autotune.publish.formats.mpich import MpichTree
from autotune.publish.formats.rules import RulesV1
from autotune.publish.header import Header, blank_checksum, comment_out, seal, series
from autotune.publish.install import Text, check_owner, load_text, side_of
from autotune.space.outside_names import Names, check_groups
from runner.errors import RunnerError
from runner.mpi.library import Library

_VERSION = re.compile(r"\(seen with ([0-9][0-9A-Za-z._+~-]{0,40})\)$")
_WIDTH, _BEFORE = 100, 20
"""Characters of a line that are shown, and those of them before the first difference."""
_END = "nothing of it is executed.\nIf it is yours, publish it again."


def compose(fmt: Format, header: Header, content: Content, others: str, library: Library) -> Text:
    """The whole file: the lines of others (``others``), the header, and ``content`` rendered.

    Raises UsageError for content that the format cannot express.
    """
    body = fmt.render(content, library)
    return _with_header(
        fmt, header, others, fmt.with_version_check(body, library) if header.guards else body
    )


def _with_header(fmt: Format, header: Header, others: str, body: str) -> Text:
    """The lines of others, the header, and the text of the content."""
    lines = header.lines(fmt.merges)
    if fmt.comment is None:
        whole = seal(comment_out(lines, ("# ", "")) + body)
        return Text(body, whole[: len(whole) - len(body)])
    end = comment_out([CLOSE], fmt.comment) if fmt.merges else ""
    return Text(fmt.prologue + others + seal(comment_out(lines, fmt.comment) + body + end))


@dataclass(frozen=True)
class Difference:
    """Where a published file differs from what autotune would write.

    ``code`` is ``published.untrusted`` for a line that autotune would not write from this header,
    and ``published.edited`` if there is none: then the header's data are not those of the
    publication.
    """

    words: str
    code: str = "published.untrusted"


def difference(
    path: Path, text: Text, header: Header, library: Library | None = None
) -> Difference | None:
    """The first difference of a published file from its own rendering; None if there is none.

    If lines of others stay in the file, only the published block is compared.  ``library`` is of
    the family that the file is for.  Without it the one that the header names counts, and a
    selection tree, which is made from the files of the library, is taken as it is: the checksum
    covers it.  Raises UsageError if autotune could not write such a file.
    """
    fmt = find(header.format)
    present, first = text.main, 1
    if fmt.merges:
        parts = split_block(text.main)
        if parts is None:
            return Difference(
                f"{path}: the two marks around what autotune published ({BEGIN!r}, {CLOSE!r}) "
                "are missing, or there are several"
            )
        present, first = parts.block, 1 + parts.before.count("\n")
    then = _library_then(path, header, library)
    try:
        if library is None and isinstance(fmt, MpichTree):
            own = _with_header(fmt, header, "", text.main)
        else:
            own = compose(fmt, header, header.content, "", then)
    except (UsageError, RunnerError) as problem:
        raise UsageError(
            f"{path}: autotune would not write such a file: {problem}", code="published.untrusted"
        ) from None
    # The file itself comes first, because readers see its lines; then the file beside it.
    pairs = [(path, present, own.main, first), (side_of(path), text.side or "", own.side or "", 1)]
    for file, theirs, ours, number in pairs:
        if blank_checksum(theirs) != blank_checksum(ours):
            return Difference(f"{file}: {_line(theirs, ours, number)}")
    if any(theirs != ours for _, theirs, ours, _ in pairs):
        return Difference(
            f"{path}: its data were edited since it was published", "published.edited"
        )
    return None


def edit(path: Path, text: Text, header: Header) -> str | None:
    """What was edited in a file since it was published, in words; None if nothing was.

    A file that this autotune cannot render, as one of an unknown format, counts as edited.
    """
    try:
        first = difference(path, text, header)
    except UsageError as problem:
        return str(problem)
    return None if first is None else first.words


def _library_then(path: Path, header: Header, library: Library | None) -> Library:
    """The library with the version of the publication, for the text; raises UsageError."""
    then = library or Library(known_family(header.family), "0", "", "")
    match = _VERSION.search(header.mpi)
    if match is not None:
        then = replace(then, version=match[1])
        if series(then) == header.mpi:
            return then
    raise UsageError(
        f"{path}: is for {header.mpi!r}; expected words such as {series(library or then)!r}",
        code="published.other_library",
    )


def _line(text: str, ours: str, first: int) -> str:
    """The line that differs from autotune's own; ``first`` is the number of the first line."""
    theirs, own_lines = text.split("\n"), ours.split("\n")
    for number, line in enumerate(theirs):
        own = own_lines[number] if number < len(own_lines) else ""
        if line != own:
            same = itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(line, own, strict=False)
            )
            long = max(len(line), len(own)) > _WIDTH
            begin = max(0, sum(1 for _ in same) - _BEFORE) if long else 0
            words = f"{own[begin : begin + _WIDTH]!a}" if own else "nothing"
            column = f", from column {begin + 1} on," if begin else ""
            return (
                f"line {first + number}{column} is {line[begin : begin + _WIDTH]!a}, where "
                f"autotune would write {words}"
            )
    return f"ends where autotune would write {own_lines[len(theirs)][:_WIDTH]!a}"


@dataclass(frozen=True)
class Trust:
    """The library that would load files, and the names of the spaces known here."""

    library: Library
    known_names: Names

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
        check_groups(content.groups, self.known_names, origin, tables)

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
        text = load_text(path) if path.is_absolute() else None
        header = None if text is None else text.header
        if text is None or header is None or not isinstance(find(header.format), RulesV1):
            raise UsageError(
                f"{path} is not a table of rules that autotune published",
                code="published.untrusted",
            )
        if header.content.groups:
            raise UsageError(f"{path} contains more than rules", code="published.untrusted")
        self.check(path, text, header)

    def _check_text(self, path: Path, text: Text, header: Header) -> None:
        first = difference(path, text, header, self.library)
        if first is not None:
            raise UsageError(f"{first.words}: {_END}", code=first.code)
