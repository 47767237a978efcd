"""The interface of a kernel for running, checking and printing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol


@dataclass(frozen=True)
class Check:
    """One verified number; it is right if it is ``reference`` up to a relative ``tolerance``."""

    name: str
    value: float
    reference: float
    tolerance: float

    @property
    def error(self) -> float:
        """|value - expected| / |expected|; infinite if the value is not finite."""
        if not math.isfinite(self.value):
            return math.inf
        difference = abs(self.value - self.reference)
        return difference / abs(self.reference) if self.reference else difference

    @property
    def right(self) -> bool:
        return self.error <= self.tolerance


class Stopwatch:
    """Adds up the time spent inside ``with`` blocks, in ``seconds``."""

    __slots__ = ("_begin", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begin = 0.0

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += perf_counter() - self._begin


@dataclass(frozen=True)
class Facts:
    """The printed facts of a problem.

    ``size`` is a text (``64x64x64``). The operations are those of the timed part, as NPB counts
    them, of all ranks together, with their kind.
    """

    size: str
    iterations: int
    operations: float
    operation_type: str


class Kernel(Protocol):
    """One benchmark on one rank; all methods are collective.

    Steps that can fail on one rank alone (wrong number of ranks, kernels that do not compile)
    belong in ``build``, before any collective call; a failure there is reported to all ranks.
    """

    facts: Facts
    mpi: Stopwatch
    """Runs while the timed part is inside MPI."""

    def prepare(self) -> None:
        """Set the start values, and do the original's untimed work before the clock starts.

        This work is usually one iteration that touches all pages. Called before every repetition.
        """

    def solve(self) -> None:
        """The timed part: only messages on buffers; nothing is pickled or printed."""

    def checks(self) -> list[Check]:
        """The results of the last :meth:`solve`; those of rank 0 count."""
