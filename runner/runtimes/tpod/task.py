"""Tasks: one block each, whose step is compiled and calls MPI as if it might block."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.runtimes import mate

Partner = tuple[int, int]
"""A task at the other end of a message: its process and its number there."""


class Calls(Protocol):
    """The functions that a step may call; each is compiled."""

    def isend(self, buffer: NDArray[Any], peer: int, tag: int = 0) -> None: ...
    def irecv(self, buffer: NDArray[Any], peer: int, tag: int = 0) -> None: ...
    def send(self, buffer: NDArray[Any], peer: int, tag: int = 0) -> None: ...
    def recv(self, buffer: NDArray[Any], peer: int, tag: int = 0) -> None: ...
    def wait(self) -> None: ...
    def post(self, buffer: NDArray[Any], peer: int, tag: int = 0) -> None: ...
    def take(self) -> None: ...
    def buffering(self) -> AbstractContextManager[None]: ...
    def seconds(self) -> float: ...
    def cpu_seconds(self) -> float: ...


class Task:
    """A task; subclasses define ``step(self, step)`` in the dialect of MATE's compiled regions.

    Besides ``ctx.isend`` and ``ctx.irecv`` a step may call ``ctx.wait()`` (for all started
    messages), ``ctx.send`` and ``ctx.recv``: each swaps the task out until the messages are
    complete. It names its partners by their place in ``partners``: ``self.peers[n]``.

    ``ctx.post`` starts to receive for a later step, in which ``ctx.take()`` waits for all posted
    messages.

    ``after``: numbers of the tasks of this process whose previous step must be over before a step
    starts, with the barrier of neighbours; each of them names this one, too. ``same``: those whose
    same step must be over.
    """

    regions: ClassVar[mate.Graph]
    ctx: Calls

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "step" in cls.__dict__:
            cls.regions = mate.Graph(cls.__name__)
            cls.regions.region(compiled=True)(cls.__dict__["step"])

    def __init__(self, partners: Sequence[Partner] = ()) -> None:
        self.partners = list(partners)
        self.peers: NDArray[np.int64] = np.zeros(0, np.int64)
        """The partners' numbers in compiled code; set when the tasks start."""
        self.top = 31
        """The largest tag of its messages."""
        self.after: list[int] = []
        self.same: list[int] = []


class Sinc(Task):
    """Counts the tasks of a step: it runs when all have run, and they wait for it."""

    def step(self, step: int) -> None:
        """Empty: its turn is the signal."""


class GlobalSinc(Task):
    """The same across all processes: they tell each other in rounds of twice the distance."""

    def __init__(self, partners: Sequence[Partner]) -> None:
        super().__init__(partners)
        self.token = np.zeros(1, np.int64)
        self.answer = np.zeros(1, np.int64)

    def step(self, step: int) -> None:
        """In round ``k`` to the process ``2^k`` above, and from the one ``2^k`` below."""
        for n in range(len(self.peers) // 2):
            self.ctx.isend(self.token, self.peers[2 * n], n)
            self.ctx.recv(self.answer, self.peers[2 * n + 1], n)


def global_partners(process: int, processes: int, place: int) -> list[Partner]:
    """The partners of :class:`GlobalSinc`, the task ``place`` of each process."""
    partners, distance = [], 1
    while distance < processes:
        partners.append(((process + distance) % processes, place))
        partners.append(((process - distance) % processes, place))
        distance *= 2
    return partners
