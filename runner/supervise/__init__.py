"""Runs programs and ends all processes that they started; see :class:`Supervisor`."""

from runner.supervise.client import DeferredInterrupts, Supervisor
from runner.supervise.messages import (
    ExecRequest,
    ExecResult,
    Leftover,
    PatternMatch,
    RankSeen,
    RunInterrupted,
    StartError,
    SupervisorLost,
    UnkillableError,
)

__all__ = [
    "DeferredInterrupts",
    "ExecRequest",
    "ExecResult",
    "Leftover",
    "PatternMatch",
    "RankSeen",
    "RunInterrupted",
    "StartError",
    "Supervisor",
    "SupervisorLost",
    "UnkillableError",
]
