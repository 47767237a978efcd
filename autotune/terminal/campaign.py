"""Terminal output of a measuring campaign."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.terminal.command_line import this_command
from autotune.terminal.progress import LiveLine
from autotune.terminal.render import print_line, print_message, print_table
from autotune.wording import remaining, seconds

if TYPE_CHECKING:
    from autotune.datasets.campaign import CampaignEvent
    from autotune.datasets.plan import ExplorationPlan, PreparedCell


def print_continuation(why: str) -> None:
    """Print why a campaign has ended, and the command that continues it."""
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
        from autotune.measurement.events import PhaseStarted, RunEnded, Waiting
        from autotune.notes import Note

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


def print_plan(plan: ExplorationPlan, cells: Sequence[PreparedCell]) -> None:
    """Print what a campaign would measure."""
    rows = [
        [
            p.plan.key,
            p.plan.split,
            str(len(p.settings)),
            str(p.runs),
            str(p.cut.blocks),
            seconds(p.planned_s),
        ]
        for p in cells
    ]
    columns = ["cell", "split", ">settings", ">runs", ">blocks", ">planned"]
    print_table(f"{plan.name} ({plan.kind})", columns, rows)
    print_line(f"planned time of all cells: {seconds(sum(p.planned_s for p in cells))}")


def print_campaign(folder: Path, is_finished: bool) -> None:
    """Print where the dataset is, and whether it is whole."""
    state = "all blocks of the cells are measured" if is_finished else "not finished"
    print_line(
        f"{folder}: {state}; to describe it:  autotune dataset describe {shlex.quote(str(folder))}",
        whole=True,
    )
