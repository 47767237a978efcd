"""What carries the messages between ranks, and what their start takes, as it was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Cause = Literal["resolver", "pci", "ofi"]
"""Why a start takes long: the host's name is looked up, hwloc scans PCI devices, Open MPI opens
libfabric that carries nothing within a node."""


@dataclass(frozen=True)
class SeenTransport:
    """Transports of one launch; empty: nothing was seen."""

    in_force: str = ""
    """What the library reports, as ``ob1: sm``, ``ucx: sysv/memory, cma/memory`` or ``ofi: tcp``;
    "": unknown."""
    protocols: Mapping[str, str] = field(default_factory=dict)
    """The protocols of a call by message size, by names such as ``MPI_Send within a node``."""
    inactive: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the line and around it that the ranks reported as inactive, with the reason."""
    device: str = ""
    """MPICH's device and network module, as ``ch4:ucx``; "": unknown, or another library."""

    @property
    def carrier(self) -> str:
        """The first word of what the library reports: ob1, ucx, cm, ofi, shm."""
        return self.in_force.partition(":")[0]

    @property
    def lanes(self) -> tuple[str, ...]:
        """The transports of the carrier: ``sm``; ``sysv/memory``, ``cma/memory``; ``tcp``."""
        words = self.in_force.rpartition(": ")[2] if ": " in self.in_force else ""
        return tuple(word.strip() for word in words.split(",") if word.strip())


@dataclass(frozen=True)
class StartUpFacts:
    """The start of ranks: ``seconds`` of a launch with a program that does nothing.

    ``causes``: the seconds that a cause takes, as far as it was measured.
    """

    seconds: float
    causes: Mapping[Cause, float] = field(default_factory=dict)
    program_seconds: float | None = None
    """The time of the program after the start; None: unknown."""
