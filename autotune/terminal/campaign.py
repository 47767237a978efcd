"""Terminal output of a measuring campaign."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from autotune.terminal.command_line import this_command
from autotune.terminal.progress import LiveLine
from autotune.terminal.render import print_message
from autotune.wording import remaining

if TYPE_CHECKING:
    from autotune.datasets.campaign import CampaignEvent


def print_continuation(why: str) -> None:
    print_message(f"autotune: {why}.  Continue with:\n  {this_command()}")


class CampaignProgress(LiveLine):
    """Progress of a campaign: one live line on a terminal, a line for each block elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.left_s = 0.0
        self._phase = "starting"
        self._runs = 0
        self._since = time.monotonic()

    def __call__(self, event: CampaignEvent) -> None:
        from autotune.datasets.campaign import BlockEnd
        from autotune.notes import Note
        from autotune.study.events import PhaseStarted, RunEnded, Waiting

        if self.quiet:
            return
        if isinstance(event, PhaseStarted):
            self._phase, self._runs = event.words, 0
            self._line(f"{event.words} ...{self._left()}")
        elif isinstance(event, Waiting | Note):
            self._line(event.words)
        elif isinstance(event, RunEnded):
            self._runs += 1
        elif isinstance(event, BlockEnd):
            self.left_s, self._since = event.left_s, time.monotonic()
            bad = f", {event.bad} of them failed or were rejected" if event.bad else ""
            self._line(f"{event.cell}: block {event.block + 1} stored, {event.runs} runs{bad}")
        if self._live is not None:
            self._draw(f"{self._phase}  run {self._runs}{self._left()}")

    def _left(self) -> str:
        left = self.left_s - (time.monotonic() - self._since)
        return f"  about {remaining(left)} left for all cells" if left >= 1 else ""

    def _line(self, text: str) -> None:
        target = self._live.console if self._live is not None else self.console
        target.print(text, markup=False)
