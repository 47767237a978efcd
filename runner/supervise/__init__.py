"""Runs programs and ends all processes that they started; see :class:`Supervisor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.supervise.messages import (
    ExecRequest,
    ExecResult,
    Leftover,
    PatternMatch,
    RankSnapshot,
    RunInterrupt,
    StartError,
    SupervisorLoss,
    UnkillableError,
)

if TYPE_CHECKING:
    from runner.supervise.client import DeferredInterrupts, Supervisor

__all__ = [
    "DeferredInterrupts",
    "ExecRequest",
    "ExecResult",
    "Leftover",
    "PatternMatch",
    "RankSnapshot",
    "RunInterrupt",
    "StartError",
    "Supervisor",
    "SupervisorLoss",
    "UnkillableError",
]


def __getattr__(name: str) -> Any:
    """Loads names that the supervision process itself does not need, so that it starts fast."""
    if name not in ("DeferredInterrupts", "Supervisor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runner.supervise import client

    return getattr(client, name)
