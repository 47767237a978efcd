"""What cannot be translated, with its place."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from runner.mate.errors import MateError


class TranslationError(MateError):
    """``place`` is "file:line"; every problem of a file is one of these."""

    exit_code = 2

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


Fail = Callable[[cst.CSTNode, str], TranslationError]


def positions(wrapper: MetadataWrapper, file: str) -> Fail:
    """How an error at a node is made."""
    places = wrapper.resolve(PositionProvider)

    def fail(node: cst.CSTNode, problem: str) -> TranslationError:
        place = places.get(node)
        return TranslationError(f"{file}:{place.start.line}" if place else file, problem)

    return fail
