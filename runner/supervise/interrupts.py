"""Ctrl-C that waits until a step is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask this process to end: Ctrl-C, from a batch system, or from a closed terminal."""


class DeferredInterrupts:
    """While entered, SIGINT is counted, not raised; ``on_interrupt(count)`` is called for each.

    So are SIGTERM and SIGHUP if they raise KeyboardInterrupt. Afterwards the caller reads ``count``
    and raises the fitting exception. The class does nothing outside the main thread or if the
    signal is ignored, because no KeyboardInterrupt can occur there. It may be nested: the innermost
    gets the signals and passes their number outwards.
    """

    _innermost: DeferredInterrupts | None = None

    def __init__(self, on_interrupt: Callable[[int], None] | None = None) -> None:
        self.count = 0
        self._on_interrupt = on_interrupt
        self._previous: dict[signal.Signals, Any] = {}
        self._outer: DeferredInterrupts | None = None
        self._active = False

    @classmethod
    def is_entered(cls) -> bool:
        """True if an instance is entered; it will report an interrupt to its caller."""
        return cls._innermost is not None

    def __enter__(self) -> DeferredInterrupts:
        if threading.current_thread() is not threading.main_thread():
            return self
        numbers = [number for number in ENDING if _interrupts(number)]
        if not numbers:
            return self
        self._active = True
        self._outer = DeferredInterrupts._innermost
        DeferredInterrupts._innermost = self
        for number in numbers:
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._active:
            return
        self._active = False
        DeferredInterrupts._innermost = self._outer
        if self._outer is not None:
            self._outer.count += self.count
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._on_interrupt is not None:
            self._on_interrupt(self.count)


def _interrupts(number: signal.Signals) -> bool:
    """True if a signal raises KeyboardInterrupt, or is counted instead."""
    handler = signal.getsignal(number)
    if number == signal.SIGINT:
        return handler not in (signal.SIG_IGN, None)
    is_counted = getattr(handler, "__func__", None) is DeferredInterrupts._handle
    return is_counted or handler is signal.default_int_handler
