"""Ranks of a node that share memory, and help each other while they wait (CAB).

A rank divides a large message, pack or sum into chunks; ranks that wait in a call of the library
steal some of them. docs/reference/intranode.md describes the model and the interface.
"""

from __future__ import annotations

from runner.runtimes.intranode.cab import Cab, Chunks, Request
from runner.runtimes.intranode.config import ACCESSES, CAB, STRATEGIES, Config, add_arguments
from runner.runtimes.intranode.errors import ConfigError, IntranodeError, RankLost, RegionError
from runner.runtimes.intranode.region import Region
from runner.runtimes.intranode.saturation import saturation_number

__all__ = [
    "ACCESSES",
    "CAB",
    "STRATEGIES",
    "Cab",
    "Chunks",
    "Config",
    "ConfigError",
    "IntranodeError",
    "RankLost",
    "Region",
    "RegionError",
    "Request",
    "add_arguments",
    "saturation_number",
]
