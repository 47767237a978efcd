"""MATE: over-decomposed MPI programs, with ranks as coroutines, regions and pinned workers.

A process holds several ranks; regions of a rank run when all their dependencies are done. README.md
describes the model and the whole interface.
"""

from __future__ import annotations

from runner.runtimes.core.arena import Arena, ArenaError
from runner.runtimes.core.c_function import CFunction
from runner.runtimes.mate.config import Config, add_arguments, from_arguments
from runner.runtimes.mate.context import Context
from runner.runtimes.mate.errors import ConfigError, Deadlock, GraphError, MateError, RankFailed
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.launch import run, world
from runner.runtimes.mate.log import EventLog, check_events
from runner.runtimes.mate.messages import pieces
from runner.runtimes.mate.task import Request
from runner.runtimes.mate.usage import errors_once, parse_args
from runner.runtimes.workers.timers import Report, WorkerTimes

__all__ = [
    "Arena",
    "ArenaError",
    "CFunction",
    "Config",
    "ConfigError",
    "Context",
    "Deadlock",
    "EventLog",
    "Graph",
    "GraphError",
    "MateError",
    "RankFailed",
    "Report",
    "Request",
    "WorkerTimes",
    "add_arguments",
    "check_events",
    "errors_once",
    "from_arguments",
    "parse_args",
    "pieces",
    "run",
    "world",
]
