"""A small cluster on one machine: network namespaces joined by a delay line.

``up(name, nodes, latency_s, rate_bps)``, ``status(name)``, ``down(name)`` and ``run(name, argv)``
are the whole of it; :func:`find` and :func:`launch_words` serve those who start MPI programs
themselves.  docs/testbed.md says how it works and where it stops being a network.
"""

from runner.testbed.launch import launch_words, run
from runner.testbed.measure import status
from runner.testbed.model import Downed, Node, NodeProcess, Ran, Status, Testbed, to_json
from runner.testbed.setup import down, up
from runner.testbed.state import DEFAULT_NAME, find_testbed, is_name, names

__all__ = [
    "DEFAULT_NAME",
    "Downed",
    "Node",
    "NodeProcess",
    "Ran",
    "Status",
    "Testbed",
    "down",
    "find_testbed",
    "is_name",
    "launch_words",
    "names",
    "run",
    "status",
    "to_json",
    "up",
]
