"""A testbed: a small cluster on one machine: network namespaces joined by a delay line.

The functions are ``up(name, nodes, latency_s, rate_bps)``, ``status(name)``, ``down(name)`` and
``run(name, argv)``. :func:`find_testbed` and :func:`launch_words` are for code that starts MPI
programs itself. docs/howto/testbed.md says how a testbed works and how it differs from a network.
"""

from runner.testbed.launch import launch_words, run
from runner.testbed.measure import status
from runner.testbed.model import Node, NodeProcess, Ran, Removal, Status, Testbed
from runner.testbed.setup import down, up
from runner.testbed.state import DEFAULT_NAME, find_testbed, is_name, names

__all__ = [
    "DEFAULT_NAME",
    "Node",
    "NodeProcess",
    "Ran",
    "Removal",
    "Status",
    "Testbed",
    "down",
    "find_testbed",
    "is_name",
    "launch_words",
    "names",
    "run",
    "status",
    "up",
]
