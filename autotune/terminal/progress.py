"""Progress of a study: one line that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.text import Text

from autotune.study.events import Event, Note, PhaseStarted, RunEnded, TrialEnded, Waiting
from autotune.terminal.render import PlainConsole, shown
from autotune.wording import percent, remaining, seconds

LONG_S = 20.0
"""A phase that is expected to take longer than this, in seconds, gets a line about its duration."""
PLAIN_EVERY = 10
"""Without a terminal every tenth trial gets a line, and so does every new best setting."""


class LiveLine:
    """One line on standard error that is redrawn on a terminal.  Use it as a context manager;
    ``quiet`` draws nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = PlainConsole(stderr=True, highlight=False)
        self.quiet = quiet
        self._live: Live | None = None
        self._drawn = ""

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            self._live = Live(Text(""), console=self.console, transient=True, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None

    def _draw(self, words: str) -> None:
        """Redraw the line if there is a terminal and its text has changed."""
        if self._live is not None and words != self._drawn:
            self._drawn = words
            self._live.update(Text(shown(words), overflow="ellipsis", no_wrap=True), refresh=True)


class ProgressState(LiveLine):
    """The current step; without a terminal a line for each kind of step (before the colon)."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._kind = ""

    def __call__(self, words: str) -> None:
        kind = words.split(":", 1)[0]
        self._draw(words)
        if self._live is None and not self.quiet and kind != self._kind:
            self.console.print(f"{kind} ...", markup=False)
        self._kind = kind


class Progress(LiveLine):
    """A watcher of study events that draws the progress."""

    def __init__(self, trials: int | None, budget_s: float | None, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.trials = trials
        self.budget_s = budget_s
        self._began = time.monotonic()
        self._done = 0
        self._measured = 0
        self._runs = 0
        self._planned: int | None = None
        self._phase = "starting"
        self._best: float | None = None

    def __call__(self, event: Event) -> None:
        if self.quiet:
            return
        if isinstance(event, PhaseStarted):
            self._phase, self._planned, self._runs = event.words, event.runs, 0
            self._line(f"{event.words} ...")
        elif isinstance(event, Note):
            self._whole(event.words)
        elif isinstance(event, Waiting):
            self._line(event.words)
        elif isinstance(event, TrialEnded):
            self._trial(event)
        elif isinstance(event, RunEnded):
            self._runs += 1
            self._foretell(event)
        self._redraw()

    def _foretell(self, event: RunEnded) -> None:
        """After the first run of a long phase, print its longest duration."""
        whole = (self._planned or 0) * event.entry.record.wall_s
        if self._runs == 1 and whole >= LONG_S:
            one = seconds(event.entry.record.wall_s)
            self._line(f"  a run takes {one}: about {remaining(whole)} at most")

    def _trial(self, event: TrialEnded) -> None:
        self._done = event.number + 1
        self._measured += not event.reused
        better = event.best is not None and (self._best is None or event.best < self._best)
        if better:
            self._best = event.best
        if better or self._done % PLAIN_EVERY == 0:
            what = self._result(event)
            self._line(f"{self._count()}  {what}  best {self._gain(self._best)}{self._left()}")

    def _result(self, event: TrialEnded) -> str:
        if event.state == "ok" and event.estimate is not None:
            return f"this {self._gain(event.estimate)}"
        if event.state == "censored":
            return "stopped: too slow"
        if event.state == "pruned":
            return "screened out by cheap runs"
        return f"this {event.state}"

    def _gain(self, ratio: float | None) -> str:
        return "-" if not ratio else percent(1 / ratio - 1)

    def _count(self) -> str:
        of = f"/{self.trials}" if self.trials else ""
        return f"trial {self._done}{of}"

    def _left(self) -> str:
        """The remaining time of the search phase, at the pace so far."""
        gone = time.monotonic() - self._began
        ends = []
        if self.trials and self._measured >= 3:
            ends.append(gone / self._measured * (self.trials - self._done))
        if self.budget_s:
            ends.append(self.budget_s - gone)
        left = min(ends, default=0.0)
        return f"  about {remaining(left)} left" if left >= 1 else ""

    def _line(self, text: str) -> None:
        if self._live is None:
            self.console.print(text, markup=False)
        else:
            self._live.console.print(
                Text(shown(text), style="dim", overflow="ellipsis", no_wrap=True)
            )

    def _whole(self, text: str) -> None:
        """Print a text that is given once, on as many lines as it needs."""
        console = self.console if self._live is None else self._live.console
        console.print(Text(shown(text), style="" if self._live is None else "dim"), soft_wrap=True)

    def _redraw(self) -> None:
        if self._live is None:
            return
        words = f"{self._phase}  {self._count()}  best {self._gain(self._best)}"
        if self._phase == "searching":
            words += self._left()
        elif self._planned:
            words += f"  run {self._runs} of at most {self._planned}"
        self._draw(words)
