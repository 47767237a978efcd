"""Runs programs and ends all processes that they started; see :class:`Supervisor`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.supervise.client import Supervisor
    from runner.supervise.interrupts import DeferredInterrupts
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
_ROOMS = {"DeferredInterrupts": "interrupts", "Supervisor": "client"}
"""The modules of the names that are not in ``messages``."""


def __getattr__(name: str) -> Any:
    """Each name with its module only: a command that reads results needs the smallest one."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_ROOMS.get(name, 'messages')}")
    return getattr(module, name)
