"""Progress of a study: a live view of a few lines on a terminal, plain lines elsewhere.

Plain lines are rate limited: news that comes too soon after the last line is counted, or is in the
next line.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from autotune.measurement.events import (
    DefaultMeasured,
    Event,
    PhaseStarted,
    RunEnded,
    RunStarted,
    TrialEnded,
    Waiting,
)
from autotune.measurement.run_history import DEFAULT_KEY, DEFAULT_PHASE, WARMUP
from autotune.notes import Note
from autotune.terminal.live_view import LiveView, fit_line
from autotune.wording import Metric, count, percent, remaining, seconds

LONG_S = 20.0
"""A phase that is expected to take longer than this, in seconds, gets a line about its duration."""
LONG_RUN_S = 3.0
"""If a run of the default takes longer than this, in seconds, its first time is told at once."""
PLAIN_EVERY = 10
"""Without a terminal every tenth trial gets a line, and so does every new best setting."""
PLAIN_S = 2.0
"""Shortest time, in seconds, between two lines about trials; and between two about waiting,
:data:`WAITING_S`."""
WAITING_S = 10.0
WIDE = 4.0
"""If the ends of a noise band differ by more than this factor, its figures say nothing."""


class LiveLine(LiveView):
    """One line on standard error that is redrawn on a terminal.  Use it as a context manager;
    ``quiet`` draws nothing."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(lambda width: [self._words], quiet)
        self._words = ""

    def _draw(self, words: str) -> None:
        """Redraw the line if there is a terminal and its text has changed."""
        self._words = words
        self.draw()


class ProgressState(LiveLine):
    """The current step; without a terminal a line for each kind of step (before the colon)."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._kind = ""

    def __call__(self, words: str) -> None:
        kind = words.split(":", 1)[0]
        self._draw(words)
        if not self.active and not self.quiet and kind != self._kind:
            self.console.print(f"{kind} ...", markup=False)
        self._kind = kind


class Progress(LiveView):
    """A watcher of study events that draws the progress."""

    def __init__(
        self,
        trials: int | None,
        budget_s: float | None,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(self._view, quiet)
        self.trials = trials
        self.budget_s = budget_s
        self._clock = clock
        self._began = clock()
        self._ended_trials = 0
        self._measured_trials = 0
        self._runs = 0
        self._all_runs = 0
        self._planned_runs: int | None = None
        self._phase = "starting"
        self._best: TrialEnded | None = None
        self._defaults: list[float] = []
        self._metric = Metric()
        self._run_s: float | None = None
        self._running: tuple[str, float] | None = None
        self._waits: tuple[str, float] | None = None
        self._line_at = self._wait_at = -WAITING_S
        self._unsaid = 0

    def __call__(self, event: Event) -> None:
        if self.quiet:
            return
        if not isinstance(event, Note):
            self._waits = None
        if isinstance(event, PhaseStarted):
            self._phase, self._planned_runs, self._runs = event.words, event.runs, 0
            self.above(f"{event.words} ...")
        elif isinstance(event, Note):
            self.above(event.words, whole=True)
            if event.code == "lock.waiting":
                self._waits = ("waiting for the machine lock", self._clock())
        elif isinstance(event, Waiting):
            self._wait(event)
        elif isinstance(event, TrialEnded):
            self._trial(event)
        elif isinstance(event, RunStarted):
            self._running = (_what(event), self._clock())
        elif isinstance(event, RunEnded):
            self._running = None
            self._runs += 1
            self._all_runs += 1
            self._learn(event)
        elif isinstance(event, DefaultMeasured):
            self._defaults, self._run_s = list(event.values_s), event.run_s
            self.above(f"the default takes {self._default()}; {self._cost()}")
        if not isinstance(event, RunEnded):  # Something follows at once.
            self.draw()

    def _learn(self, event: RunEnded) -> None:
        record = event.entry.record
        if event.entry.key == DEFAULT_KEY and record.valid and event.entry.counts:
            self._defaults.append(record.value_s)
            self._metric = Metric.of(record)
            self._run_s = self._run_s or record.wall_s
            first = event.entry.kind == DEFAULT_PHASE and len(self._defaults) == 1
            if first and record.wall_s >= LONG_RUN_S:
                self.above(f"the default takes {self._default()}; {self._cost()}")
        whole = (self._planned_runs or 0) * record.wall_s
        if self._runs == 1 and whole >= LONG_S:
            one = seconds(record.wall_s)
            self.above(f"  a run takes {one}: about {remaining(whole)} at most")

    def _wait(self, event: Waiting) -> None:
        now = self._clock()
        self._waits = (event.words, now)
        if not self.active and now - self._wait_at < WAITING_S:
            self._unsaid += 1
            return
        more = f" (and {count(self._unsaid, 'wait')} before)" if self._unsaid else ""
        self._wait_at, self._unsaid = now, 0
        if not self.active:
            self.above(event.words + more)

    def _trial(self, event: TrialEnded) -> None:
        self._ended_trials = event.number + 1
        self._measured_trials += not event.reused
        best_before = None if self._best is None else self._best.best
        better = event.best is not None and (best_before is None or event.best < best_before)
        if event.best is not None:
            self._best = event
        now = self._clock()
        if self.active or now - self._line_at < PLAIN_S:
            return
        if better or self._ended_trials % PLAIN_EVERY == 0:
            self._line_at = now
            what = self._result(event)
            self.above(f"{self._count()}  {what}  best {_gain(event.best)}{self._left()}")

    def _result(self, event: TrialEnded) -> str:
        if event.state == "ok" and event.estimate is not None:
            return f"this {_gain(event.estimate)}"
        if event.state == "censored":
            return "stopped: too slow"
        if event.state == "pruned":
            return "screened out by cheap runs"
        return f"this {event.state}"

    def _count(self) -> str:
        of = f"/{self.trials}" if self.trials else ""
        return f"trial {self._ended_trials}{of}"

    def _left(self) -> str:
        """The remaining time of the search phase, at the pace so far."""
        elapsed_s = self._clock() - self._began
        ends = []
        if self.trials and self._measured_trials >= 3:
            ends.append(elapsed_s / self._measured_trials * (self.trials - self._ended_trials))
        if self.budget_s:
            ends.append(self.budget_s - elapsed_s)
        left = min(ends, default=0.0)
        return f"  about {remaining(left)} left" if left >= 1 else ""

    def _default(self) -> str:
        """The default's time with its spread."""
        values = self._defaults
        middle = self._metric.words(statistics.median(values))
        if len(values) == 1:
            return f"{middle} (1 run)"
        ends = " .. ".join(map(self._metric.words, (min(values), max(values))))
        return f"{middle} ({ends}, {len(values)} runs)"

    def _cost(self) -> str:
        return "" if self._run_s is None else f"a run costs {seconds(self._run_s)}"

    def _view(self, width: int) -> list[str]:
        """The lines of the live view; the more important parts of a line come first."""
        searching = self._phase == "searching"
        where = self._count() if searching else ""
        if not searching and self._planned_runs:
            where = f"run {self._runs} of at most {self._planned_runs}"
        left = self._left().strip() if searching else ""
        run_count = count(self._all_runs, "run")
        lines = [fit_line("phase", [self._phase, where, left, f"{run_count} in all"], width)]
        best = self._best
        if best is not None:
            band = ""
            if best.band is not None:
                low, high = best.band
                band = f"noise {_gain(high)} .. {_gain(low)}"
                band = band if high < WIDE * low else "the noise is larger"
            name = "" if best.best_setting is None else best.best_setting.key
            lines.append(fit_line("best", [_gain(best.best), band, "not proven", name], width))
        if self._defaults:
            lines.append(fit_line("default", [self._default(), self._cost()], width))
        lines.append(fit_line("now", self._now(), width))
        return lines

    def _now(self) -> list[str]:
        """What is waited for, and since when."""
        at = self._clock()
        if self._waits is not None:
            words, since = self._waits
            return [f"{remaining(at - since)}: {words}"]
        if self._running is None:
            return ["between two runs"]
        what, since = self._running
        return [f"run {self._all_runs + 1}, {remaining(at - since)}", what]


def _what(event: RunStarted) -> str:
    """What a launch is for."""
    if event.phase.partition(":")[0] == WARMUP:
        return "warm-up with the default"
    return event.setting.key


def _gain(ratio: float | None) -> str:
    return "-" if not ratio else percent(1 / ratio - 1)
