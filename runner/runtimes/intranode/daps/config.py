"""Who makes progress, and how: a checked configuration, and its command-line switches."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from runner.runtimes.intranode import switches
from runner.runtimes.intranode.errors import ConfigError
from runner.runtimes.intranode.published import TunedLibrary
from runner.runtimes.intranode.switches import OFF, ON, WAITS

PROGRESS = ("none", "thread", "ghosts", "dynamic")
PLACES = ("shared", "dedicated")
ORDERS = ("network-first", "shm-first")

SWITCHES: switches.Table = {
    "progress": ("progress", PROGRESS, "who makes the progress of a rank that computes"),
    "ghosts": ("ghosts", (0, 4096), "ranks of a node that only make progress; 0: one, if any"),
    "thread-place": ("thread_place", PLACES, "the core of a progress thread"),
    "order": ("order", ORDERS, "which messages of another rank are looked at first"),
    "filter": ("filter", (ON, OFF), "look only at ranks that may have a message"),
    "poll-gap-us": ("poll_gap_us", (0, 1000000), "microseconds between looks at other ranks"),
    "waiting": ("waiting", WAITS, "what a rank does that finds nothing"),
    "spins": ("spins", (0, 1 << 30), "looks before a waiting rank yields its core"),
    "eager": ("eager", (0, 1 << 20), "bytes up to which a send carries its data at once"),
    "steal-seed": ("seed", (0, 1 << 30), "seed of the choice whom to help"),
}
"""Switch -> its field, values or bounds, and meaning."""


@dataclass(frozen=True)
class Config:
    """The configuration of all ranks; raises :class:`ConfigError` for an impossible one.

    ``progress``: none for a computing rank; by a thread of it; by the last ``ghosts`` ranks of each
    node, which do nothing else (as Casper); or by waiting ranks (dynamic, Ouyang 3.2).
    ``thread_place``: the progress thread has no core and yields, or it spins on its own core.
    ``filter``: Rule 2 of Ouyang 3.3. ``waiting``: spin, or yield after ``spins`` looks; ``auto``
    yields if there are more threads than cores. :data:`SWITCHES` explains the others.
    """

    progress: str = "dynamic"
    ghosts: int = 0
    thread_place: str = "shared"
    order: str = "network-first"
    filter: bool = True
    poll_gap_us: int = 0
    waiting: str = "auto"
    spins: int = 50
    eager: int = 8192
    seed: int = 1

    def __post_init__(self) -> None:
        switches.check(SWITCHES, self)
        if self.ghosts and self.progress != "ghosts":
            raise ConfigError(
                f"--ghosts {self.ghosts} with --progress {self.progress}: expected --progress "
                "ghosts, or no --ghosts",
                code="intranode.option",
            )
        if self.thread_place == "dedicated" and self.progress != "thread":
            raise ConfigError(
                f"--thread-place dedicated with --progress {self.progress}: expected --progress "
                "thread, or no --thread-place",
                code="intranode.option",
            )

    @property
    def ghost_count(self) -> int:
        """Ranks of each node that compute nothing."""
        return max(self.ghosts, 1) if self.progress == "ghosts" else 0


DAPS = TunedLibrary("daps", Config, SWITCHES, "daps-config")
"""Its published configuration, and its command line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the library's switches in a separate group; a missing one is None."""
    DAPS.add_arguments(parser.add_argument_group("progress"))
