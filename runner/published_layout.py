"""The layout that is published for a runtime: environment variables that its programs read.

``MATE_FACTOR``, ``TARRAGON_FACTOR`` and ``TPOD_FACTOR`` are ranks, tasks or blocks for each worker;
``MATE_CHUNK`` and so on are bytes below which a message between processes is to stay. They count
where the command line says nothing of the layout, and only for variants that run on the runtime.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from runner.errors import RunnerError

RUNTIMES = ("mate", "tarragon", "tpod")
WORDS = ("factor", "chunk")
LARGEST_FACTOR, LARGEST_CHUNK = 256, 1 << 40


class PublishedLayoutError(RunnerError):
    """A variable that has no possible value; the message names it."""

    exit_code = 2


@dataclass(frozen=True)
class PublishedLayout:
    """``factor``: ranks, tasks or blocks for each worker; ``chunk``: bytes below which messages are
    to stay; None for what is not published."""

    factor: int | None = None
    chunk: int | None = None


def variable(runtime: str, word: str) -> str:
    """The name of the variable of a runtime: ``MATE_FACTOR``."""
    return f"{runtime}_{word}".upper()


def published_layout(runtime: str) -> PublishedLayout:
    """What the environment says for a runtime; raises :class:`PublishedLayoutError` for a wrong
    value."""
    return PublishedLayout(
        factor=_number(variable(runtime, "factor"), LARGEST_FACTOR),
        chunk=_number(variable(runtime, "chunk"), LARGEST_CHUNK),
    )


def _number(name: str, largest: int) -> int | None:
    text = os.environ.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:20]) <= largest):
        raise PublishedLayoutError(
            f"the environment variable {name} is {text[:40]!r}: expected a whole number from 1 to "
            f"{largest}; correct it, or unset it (autotune unpublish removes its file)",
            code="layout.variable",
        )
    return int(text)
