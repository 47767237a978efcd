"""Calls of compiled functions with watched arrays."""

from __future__ import annotations

import functools
import sys
from typing import Any

from runner.runtimes.check.array import WatchedArray
from runner.runtimes.check.watch import unwatched


@functools.cache
def catch_numba_calls() -> None:
    """Let functions of numba run in Python if they get watched arrays."""
    if "numba" not in sys.modules:
        return
    from numba.core.dispatcher import Dispatcher

    compiled: Any = Dispatcher.__call__

    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        if any(isinstance(a, WatchedArray) or unwatched(a) is not a for a in args):
            return self.py_func(*args, **keywords)
        return compiled(self, *args, **keywords)

    Dispatcher.__call__ = call  # type: ignore[method-assign, assignment]
