"""The number of sleeping workers, for the parts of the runtime that start messages."""

from __future__ import annotations

from runner.runtimes.core.core import Core
from runner.runtimes.core.words import CORE

_SLEEPING = CORE.sleeping >> 3


class NativeSleepers:
    """The sleeping workers."""

    __slots__ = ("_count",)

    def __init__(self, core: Core) -> None:
        self._count = core.memory.words[_SLEEPING : _SLEEPING + 1]

    @property
    def asleep(self) -> int:
        return self._count[0]


class NoSleepers:
    """The sleepers of a process with one worker: it is awake when Python code asks."""

    __slots__ = ("asleep",)

    def __init__(self) -> None:
        self.asleep = 0
