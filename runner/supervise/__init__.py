"""Run programs so that nothing of them can be lost sight of: see :class:`Supervisor`."""

from runner.supervise.client import Supervisor
from runner.supervise.errors import RunInterrupted, StartError, SupervisorLost, UnkillableError
from runner.supervise.interrupts import DeferredInterrupts
from runner.supervise.model import (
    ExecRequest,
    ExecResult,
    Leftover,
    PatternMatch,
    RankSeen,
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
