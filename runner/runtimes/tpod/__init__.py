"""TPOD: the blocks of a process as tasks whose blocking MPI calls yield (Barrett et al.).

A process owns a whole region of shared memory. Its domain is divided into blocks, and a block's
halo exchange, boundary and stencil are one task, which calls MPI as if it might block. A waiting
task is swapped out. docs/reference/tpod.md describes the model and the interface.
"""

from __future__ import annotations

from runner.runtimes.mate.usage import errors_once, parse_args
from runner.runtimes.tpod.blocks import Blocks, over_decompose
from runner.runtimes.tpod.config import CALLS, Config, add_arguments, from_arguments, thread_level
from runner.runtimes.tpod.errors import ConfigError, Deadlock, TaskError, TpodError
from runner.runtimes.tpod.order import ORDERS, ordered
from runner.runtimes.tpod.runtime import Tpod
from runner.runtimes.tpod.task import Partner, Task

__all__ = [
    "CALLS",
    "ORDERS",
    "Blocks",
    "Config",
    "ConfigError",
    "Deadlock",
    "Partner",
    "Task",
    "TaskError",
    "Tpod",
    "TpodError",
    "add_arguments",
    "errors_once",
    "from_arguments",
    "ordered",
    "over_decompose",
    "parse_args",
    "thread_level",
]
