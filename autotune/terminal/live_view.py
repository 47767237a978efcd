"""A live view: a few lines on standard error that are redrawn on a terminal.

Measured runs must not feel it. It is redrawn after events, which come between two runs, at most
twice a second; and by a thread that sleeps in between, so that the elapsed time of a run is seen.
The pauses of this thread follow from what a drawing costs: it uses at most one part in
1 / :data:`CPU_SHARE` of one CPU.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from rich.live import Live
from rich.text import Text

from autotune.terminal.message import fold
from autotune.terminal.render import PlainConsole, escape_controls

REFRESH_S = 0.5
"""Shortest time between two drawings, in seconds: at most two a second."""
TICK_S = 1.0
"""Shortest pause of the thread, in seconds."""
CPU_SHARE = 0.001
"""Largest share of one CPU that the thread's drawings use."""
Lines = Callable[[int], Sequence[str]]
"""A function that returns the lines of the view for a number of columns."""


def pause_s(cost_s: float) -> float:
    """The pause after a drawing that used ``cost_s`` seconds of CPU time."""
    return max(TICK_S, cost_s / CPU_SHARE)


def fit_line(label: str, parts: Sequence[str], width: int) -> str:
    """A line of a label and its parts, the important ones first: as many as fit into ``width``.

    The first part is shortened if it does not fit.
    """
    words = [part for part in parts if part]
    text = f"{label:<9}{words[0]}" if words else label
    for part in words[1:]:
        if len(text) + 2 + len(part) > width:
            break
        text += f"  {part}"
    return text if len(text) <= width else text[: max(width - 1, 0)] + "\N{HORIZONTAL ELLIPSIS}"


class LiveView:
    """Lines that are redrawn on a terminal; nothing elsewhere, on a dumb terminal, or if ``quiet``.

    A context manager. ``lines`` returns what is drawn. ``ticks``: redraw also between events.
    ``draw_count`` counts the drawings.
    """

    def __init__(self, lines: Lines, quiet: bool = False, ticks: bool = True) -> None:
        self.console = PlainConsole(stderr=True, highlight=False)
        self.quiet = quiet
        self.draw_count = 0
        self._lines = lines
        self._ticks = ticks
        self._last: tuple[str, ...] = ()
        self._last_at = -REFRESH_S
        self._stop = threading.Event()
        self._drawing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._live: Live | None = None

    @property
    def active(self) -> bool:
        """Whether lines are redrawn; if not, the caller prints plain lines."""
        return self._live is not None

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty() and not self.console.is_dumb_terminal:
            self._live = Live(Text(""), console=self.console, transient=True, auto_refresh=False)
            self._live.__enter__()
            if self._ticks:
                self._stop.clear()
                self._thread = threading.Thread(target=self._tick, name="live view", daemon=True)
                self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def draw(self) -> None:
        """Redraw the lines if their text has changed and the last drawing is long enough ago."""
        if self._live is None or time.monotonic() - self._last_at < REFRESH_S:
            return
        if not self._drawing.acquire(blocking=False):
            return
        try:
            lines = tuple(self._lines(self.console.width - 1))
            if lines == self._last:
                return
            self._last, self._last_at = lines, time.monotonic()
            self.draw_count += 1
            text = Text("\n".join(map(escape_controls, lines)), overflow="ellipsis", no_wrap=True)
            self._live.update(text, refresh=True)
        finally:
            self._drawing.release()

    def above(self, text: str, whole: bool = False) -> None:
        """Print a text above the lines, where it stays; cut to one line unless ``whole``."""
        if self.quiet:
            return
        words = escape_controls(text)
        if self.console.is_terminal:
            words = fold(words, self.console.width)
        if self._live is None:
            self.console.print(Text(words), soft_wrap=True)
        elif whole:
            self._live.console.print(Text(words, style="dim"), soft_wrap=True)
        else:
            line = Text(escape_controls(text), style="dim", overflow="ellipsis", no_wrap=True)
            self._live.console.print(line)

    def _tick(self) -> None:
        pause = TICK_S
        while not self._stop.wait(pause):
            before = time.thread_time()
            self.draw()
            pause = pause_s(time.thread_time() - before)
