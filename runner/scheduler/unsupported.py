"""Batch systems that take no workers of ours: known by the environment of their jobs alone."""

from __future__ import annotations

from collections.abc import Mapping

from runner.scheduler.base import Allocation

_NODE_VARIABLES = {
    "PBS": "PBS_NODEFILE",
    "LSF": "LSB_MCPU_HOSTS",
    "Grid Engine": "PE_HOSTFILE",
}
"""Set in a job that may use several nodes; their names are not read."""


def allocation(environment: Mapping[str, str]) -> Allocation | None:
    """What a process with this environment was given by one of them; None: nothing."""
    found = [name for name in _NODE_VARIABLES.values() if environment.get(name, "1") != "1"]
    return Allocation(several=True) if found else None
