"""Collectives in which every rank of a node sends and receives across nodes (PiP-MColl).

Ranks of a node share memory; several of them, the objects, exchange messages with other nodes at
the same time.  docs/reference/mcoll.md describes the algorithms and the interface.
"""

from __future__ import annotations

from runner.runtimes.intranode.errors import ConfigError, IntranodeError, RankLost
from runner.runtimes.intranode.mcoll.config import MCOLL, Config
from runner.runtimes.intranode.mcoll.multi_object import Collective, MultiObject
from runner.runtimes.intranode.mcoll.program import Counts

__all__ = [
    "MCOLL",
    "Collective",
    "Config",
    "ConfigError",
    "Counts",
    "IntranodeError",
    "MultiObject",
    "RankLost",
]
