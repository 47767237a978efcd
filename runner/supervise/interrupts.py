"""Ctrl-C that never hits in the middle of something."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class DeferredInterrupts:
    """While entered, SIGINT is counted instead of raised; ``on_interrupt(count)`` hears of it.

    At the end the caller looks at ``count`` and raises what fits.  Outside the main thread, and
    where SIGINT is ignored, it does nothing: no KeyboardInterrupt can come there.  May be nested;
    the inner one gets the signals and passes their number on to the outer one.
    """

    _innermost: DeferredInterrupts | None = None

    def __init__(self, on_interrupt: Callable[[int], None] | None = None) -> None:
        self.count = 0
        self._on_interrupt = on_interrupt
        self._previous: Any = None
        self._outer: DeferredInterrupts | None = None
        self._active = False

    def __enter__(self) -> DeferredInterrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
            return self
        self._active = True
        self._outer = DeferredInterrupts._innermost
        DeferredInterrupts._innermost = self
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._active:
            return
        self._active = False
        DeferredInterrupts._innermost = self._outer
        if self._outer is not None:
            self._outer.count += self.count
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._on_interrupt is not None:
            self._on_interrupt(self.count)
