"""What carries the messages between ranks, as it was seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SeenTransport:
    """Transports of one launch; empty: nothing was seen."""

    in_force: str = ""
    """What the library reports, as ``ob1:sm`` or ``ofi:sockets``; "": unknown."""
