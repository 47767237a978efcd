"""The directives ``#pragma mate graph`` and ``#pragma mate region(NAME) depends(A, B*@)``.

Their grammar is that of Martin 2018, chapter 4. The file also has the error for statements that
cannot be translated, with their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from runner.runtimes.mate.errors import GraphError, MateError
from runner.runtimes.mate.graph import parse_dependency

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement

_PRAGMA = re.compile(r"#\s*pragma\s+mate\b(?P<rest>.*)")
_REGION = re.compile(
    r"region\s*\(\s*(?P<name>[A-Za-z_]\w*)\s*\)\s*(depends\s*\((?P<depends>[^()]*)\))?\s*"
)


@dataclass(frozen=True)
class GraphPragma:
    """The next statement is a loop or block whose parts are regions."""


@dataclass(frozen=True)
class RegionPragma:
    """The statements up to the next directive are this region."""

    name: str
    depends: tuple[str, ...]


Pragma = GraphPragma | RegionPragma


def read(comment: str) -> Pragma | None:
    """The directive of a comment; None for any other comment.

    Raises ValueError with the expected form for a malformed directive.
    """
    match = _PRAGMA.fullmatch(comment.strip())
    if match is None:
        return None
    rest = match["rest"].strip()
    if rest == "graph":
        return GraphPragma()
    region = _REGION.fullmatch(rest)
    if region is None:
        raise ValueError(
            f"{comment.strip()!r} is not understood; expected '#pragma mate graph' or "
            "'#pragma mate region(NAME) depends(NAME, NAME*, NAME@, NAME*@)'"
        )
    # Some listings of the original have an ampersand instead of the at sign.
    words = (word.strip().replace("&", "@") for word in (region["depends"] or "").split(","))
    depends = tuple(word for word in words if word)
    try:
        for word in depends:
            parse_dependency(word)
    except GraphError as problem:
        raise ValueError(str(problem)) from None
    return RegionPragma(region["name"], depends)


def directive(node: Statement, fail: Fail) -> tuple[Pragma | None, int]:
    """The directive before a statement and the index of its line; (None, -1) without one.

    Raises TranslationError if it is malformed, or if several precede one statement.
    """
    result: tuple[Pragma | None, int] = (None, -1)
    for number, line in enumerate(node.leading_lines):
        pragma = None if line.comment is None else pragma_of(line.comment, fail)
        if pragma is None:
            continue
        if result[0] is not None:
            assert line.comment is not None
            raise fail(line.comment, "two directives without a statement between them")
        result = (pragma, number)
    return result


def pragma_of(comment: cst.Comment, fail: Fail) -> Pragma | None:
    """The directive of a comment; raises TranslationError if it is malformed."""
    try:
        return read(comment.value)
    except ValueError as problem:
        raise fail(comment, str(problem)) from None


def without_directive(node: Statement, number: int) -> Statement:
    lines = [line for i, line in enumerate(node.leading_lines) if i != number]
    return node.with_changes(leading_lines=lines)


class TranslationError(MateError):
    """Any problem of a translated file; ``place`` is "file:line"."""

    exit_code = 2

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}", code="mate.translation")
        self.place = place
        self.problem = problem


Fail = Callable[[cst.CSTNode, str], TranslationError]


def positions(wrapper: MetadataWrapper, file: str) -> Fail:
    """A function that creates the error of a node."""
    places = wrapper.resolve(PositionProvider)

    def fail(node: cst.CSTNode, problem: str) -> TranslationError:
        place = places.get(node)
        return TranslationError(f"{file}:{place.start.line}" if place else file, problem)

    return fail
