"""The algorithms and their switch points: a checked configuration, and its switches."""

from __future__ import annotations

from dataclasses import dataclass

from runner.runtimes.intranode import switches
from runner.runtimes.intranode.errors import ConfigError
from runner.runtimes.intranode.published import TunedLibrary
from runner.runtimes.intranode.switches import OFF, ON

LIBRARY = "library"
"""MPI's own algorithm."""
FORMS: dict[str, tuple[str, ...]] = {
    "allgather": ("bruck", "ring", "rd", LIBRARY),
    "allreduce": ("bruck", "scatter-bruck", "ring", "rd", LIBRARY),
    "scatter": ("tree", LIBRARY),
}
"""The algorithms of each operation."""
AUTO = "auto"
_BYTES = (0, 1 << 40)

SWITCHES: dict[str, tuple[str, tuple[str, ...] | tuple[int, int], str]] = {
    "objects": ("objects", (0, 4096), "ranks of a node that send to other nodes; 0: all"),
    "radix": ("radix", (0, 4097), "radix of trees and of Bruck's algorithm; 0: objects + 1"),
    "allgather": ("allgather", (AUTO, *FORMS["allgather"]), "algorithm"),
    "allreduce": ("allreduce", (AUTO, *FORMS["allreduce"]), "algorithm"),
    "scatter": ("scatter", FORMS["scatter"], "algorithm"),
    "allgather-switch": ("allgather_switch", _BYTES, "bytes of a rank from which auto takes ring"),
    "allreduce-switch": ("allreduce_switch", _BYTES, "bytes from which auto takes scatter-bruck"),
    "allreduce-ring-from": (
        "allreduce_ring_from",
        _BYTES,
        "bytes from which auto takes ring; 0: never",
    ),
    "allgather-mpi-from": (
        "allgather_mpi_from",
        _BYTES,
        "bytes of a rank from which auto takes the library's own; 0: never",
    ),
    "allreduce-mpi-from": (
        "allreduce_mpi_from",
        _BYTES,
        "bytes from which auto takes the library's own; 0: never",
    ),
    "overlap": ("overlap", (ON, OFF), "copy a block of a ring while the next one is under way"),
    "chunks": ("chunks", ("p-way", "binomial"), "how the ranks of a node reduce"),
    "piece": ("piece", _BYTES, "bytes of MPI's messages at most; 0: messages are whole"),
    "copy": ("copy", ("temporary", "publish"), "two buffers in turn, or one that all leave"),
    "waiting": ("waiting", (AUTO, "spin", "yield", "sleep"), "what a rank does that waits"),
    "spins": ("spins", (0, 1 << 30), "looks before a waiting rank gives its core away"),
    "same-bits": ("same_bits", (ON, OFF), "sums of floats have the same bits on all nodes"),
}
"""Switch -> its field, values or bounds, and meaning."""


@dataclass(frozen=True)
class Config:
    """The configuration of all ranks; raises :class:`ConfigError` for an impossible one.

    :data:`SWITCHES` explains the fields.  Sizes are bytes: of one rank's contribution for
    allgather, of the vector for allreduce.  The switch points to reduce-scatter and to the ring of
    allgather are those of Ouyang 4.7.
    """

    objects: int = 0
    radix: int = 0
    allgather: str = AUTO
    allreduce: str = AUTO
    scatter: str = "tree"
    allgather_switch: int = 32768
    allreduce_switch: int = 65536
    allreduce_ring_from: int = 0
    allgather_mpi_from: int = 0
    allreduce_mpi_from: int = 0
    overlap: bool = True
    chunks: str = "p-way"
    piece: int = 32768
    copy: str = "temporary"
    waiting: str = AUTO
    spins: int = 20
    same_bits: bool = True

    def __post_init__(self) -> None:
        switches.check(SWITCHES, self)
        if self.radix == 1:
            raise ConfigError(
                "--radix 1: expected 0 (objects + 1) or at least 2", code="intranode.option"
            )
        if self.objects and self.radix > self.objects + 1:
            raise ConfigError(
                f"--radix {self.radix}: {self.objects} objects have no more than "
                f"{self.objects + 1}; take a smaller radix or more --objects",
                code="intranode.option",
            )

    def objects_of(self, locals_: int) -> int:
        """Objects of a node with ``locals_`` ranks; raises :class:`ConfigError`."""
        if self.objects > locals_:
            raise ConfigError(
                f"--objects {self.objects}: a node has {locals_} ranks; expected 0 (all) to "
                f"{locals_}",
                code="intranode.option",
            )
        return self.objects or locals_

    def radix_of(self, locals_: int) -> int:
        """The radix on nodes with ``locals_`` ranks; raises :class:`ConfigError`."""
        objects = self.objects_of(locals_)
        if self.radix > objects + 1:
            raise ConfigError(
                f"--radix {self.radix}: {objects} objects have no more than {objects + 1}",
                code="intranode.option",
            )
        return self.radix or objects + 1

    def form(self, operation: str, size: int) -> str:
        """The algorithm of ``"allgather"``, ``"allreduce"`` or ``"scatter"`` for ``size`` bytes."""
        choice: str = getattr(self, operation)
        if choice != AUTO:
            return choice
        if 0 < getattr(self, f"{operation}_mpi_from") <= size:
            return LIBRARY
        if size < getattr(self, f"{operation}_switch"):
            return "bruck"
        if operation == "allgather" or 0 < self.allreduce_ring_from <= size:
            return "ring"
        return "scatter-bruck"


MCOLL = TunedLibrary("mcoll", Config, SWITCHES, "mcoll-config")
"""Its published configuration, and its command line."""
