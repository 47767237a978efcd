"""Active messages: idle ranks of a node make progress for busy ones (Daps).

docs/reference/daps.md describes the model and the interface.
"""

from __future__ import annotations

from runner.runtimes.intranode.daps.config import DAPS, ORDERS, PROGRESS, Config, add_arguments
from runner.runtimes.intranode.daps.daps import Counts, Daps, Request
from runner.runtimes.intranode.daps.window import Window

__all__ = [
    "DAPS",
    "ORDERS",
    "PROGRESS",
    "Config",
    "Counts",
    "Daps",
    "Request",
    "Window",
    "add_arguments",
]
