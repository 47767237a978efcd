"""A program with its ranks and its place: what is measured as one, here called a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from autotune.api.target import find_target
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target

Place = Literal["node", "testbed"]
"""This machine, or the testbed: two nodes, 1 ms each way, 1 Gbit/s."""
PLACES: tuple[Place, ...] = get_args(Place)
TIMEOUT_S = 60.0
"""Seconds after which a run is ended; it should take some tenths of a second."""


@dataclass(frozen=True)
class Cell:
    """A program at a place. Either ``words`` are its command line, or ``app`` and ``input`` given.

    ``metric`` and ``verify`` are for a command line; an application knows its own.
    """

    name: str
    """The program, without ranks and place; the cells of one program share it."""
    ranks: int
    place: Place
    words: tuple[str, ...] = ()
    app: str | None = None
    input: str | None = None
    metric: str | None = None
    verify: str | None = None

    def target(self, testbed: str = "testbed", mpi: str | None = None) -> Target:
        """The program as the tuner starts it; ``testbed`` is the name of the one that is up.

        Raises UsageError if something of it is not there.
        """
        request = TargetRequest(
            program=self.words or None,
            app=self.app,
            input=self.input,
            ranks=self.ranks,
            cluster="local" if self.place == "node" else testbed,
            mpi=mpi,
            metric=self.metric,
            verify=self.verify,
            timeout=TIMEOUT_S,
        )
        return find_target(request)
