"""Wall and CPU time of the parts of a program, each without the parts that it calls."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch


@dataclass
class Spent:
    """Seconds of one part."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def minus(self, other: Spent) -> Spent:
        """The difference of two readings."""
        return Spent(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)


class PartClock:
    """Clocks of named parts in the main thread.

    The time of a part inside another part belongs to the inner one only. ``spent`` is the time of
    each part so far.
    """

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = defaultdict(Spent)
        self._inside: list[Spent] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of the block for the part ``name``."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._inside.append(Spent())
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            whole = Spent(time.perf_counter() - wall_s, time.process_time() - cpu_s)
            own = whole.minus(self._inside.pop())
            self.add(name, own)
            for outer in self._inside[-1:]:
                outer.wall_s += whole.wall_s
                outer.cpu_s += whole.cpu_s

    def add(self, name: str, more: Spent) -> None:
        """Add seconds (they may be negative) to a part."""
        self.spent[name].wall_s += more.wall_s
        self.spent[name].cpu_s += more.cpu_s

    @contextmanager
    def methods(self, name: str, owner: type, words: Iterable[str]) -> Iterator[None]:
        """Count all calls of these methods of a class for the part ``name``."""
        with ExitStack() as stack:
            for word in words:
                stack.enter_context(patch.object(owner, word, self._timed(name, owner, word)))
            yield

    def _timed(self, name: str, owner: type, word: str) -> Callable[..., Any]:
        method = getattr(owner, word)

        @functools.wraps(method)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.part(name):
                return method(*args, **kwargs)

        return timed

    def reading(self) -> dict[str, Spent]:
        """A copy of ``spent``."""
        return {name: Spent(s.wall_s, s.cpu_s) for name, s in self.spent.items()}


def cpu_of(pid: int | None) -> float:
    """CPU seconds of the main thread of a process so far; 0 if it is not there."""
    try:
        text = Path(f"/proc/{pid or os.getpid()}/schedstat").read_text()
    except OSError:
        return 0.0
    return int(text.split()[0]) / 1e9
