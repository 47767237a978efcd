"""Which rank the calling thread runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from runner.mate.errors import MateError

if TYPE_CHECKING:
    from runner.mate.context import Context
    from runner.mate.task import Task


class _Here(threading.local):
    task: Task | None = None


here = _Here()
"""Set by a worker before it runs a rank."""


def context() -> Context:
    """What the rank that calls this was given; raises :class:`MateError` outside of ranks."""
    if here.task is None:
        raise MateError(
            "this function works only in a rank: call it from a function that mate.run has started"
        )
    found: Context = here.task.context
    return found
