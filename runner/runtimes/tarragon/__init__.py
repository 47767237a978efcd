"""Tarragon: graphs of tasks with firing rules, and messages on their edges (Cicotti 2011).

A program defines what is computed: tasks, edges, rules. How it runs (threads, queues, priorities,
affinity, tags, aggregation, mapping) is set separately and never changes a result.
docs/reference/tarragon.md describes the model and the interface.
"""

from __future__ import annotations

from runner.runtimes.mate.usage import errors_once, parse_args
from runner.runtimes.tarragon.compiled import CompiledTask, GridTask
from runner.runtimes.tarragon.config import (
    Config,
    add_arguments,
    check_compiled_tasks,
    from_arguments,
    thread_level,
)
from runner.runtimes.tarragon.distribution import (
    Distribution,
    RegularDistribution,
    SparseDistribution,
    VariableDistribution,
)
from runner.runtimes.tarragon.errors import (
    CommunicationError,
    ConfigError,
    Deadlock,
    ExecutionError,
    GraphError,
    TarragonError,
)
from runner.runtimes.tarragon.graph import (
    DONE,
    ERROR,
    EXEC,
    INIT,
    WAIT,
    Dependency,
    Graph,
    SparseVectorGraph,
    Task,
    VectorGraph,
    Visitor,
)
from runner.runtimes.tarragon.maps import (
    BlockingCartesianMap,
    CartesianMap,
    IdentityMap,
    Map,
    Space,
)
from runner.runtimes.tarragon.message import Message
from runner.runtimes.tarragon.runtime import Tarragon
from runner.runtimes.tarragon.visitors import (
    AffinityVisitor,
    EdgeVisitor,
    NearestNeighborConnector,
    OneNeighborConnector,
    OverlapVisitor,
    PriorityVisitor,
    SizeVisitor,
)

__all__ = [
    "DONE",
    "ERROR",
    "EXEC",
    "INIT",
    "WAIT",
    "AffinityVisitor",
    "BlockingCartesianMap",
    "CartesianMap",
    "CommunicationError",
    "CompiledTask",
    "Config",
    "ConfigError",
    "Deadlock",
    "Dependency",
    "Distribution",
    "EdgeVisitor",
    "ExecutionError",
    "Graph",
    "GraphError",
    "GridTask",
    "IdentityMap",
    "Map",
    "Message",
    "NearestNeighborConnector",
    "OneNeighborConnector",
    "OverlapVisitor",
    "PriorityVisitor",
    "RegularDistribution",
    "SizeVisitor",
    "Space",
    "SparseDistribution",
    "SparseVectorGraph",
    "Tarragon",
    "TarragonError",
    "Task",
    "VariableDistribution",
    "VectorGraph",
    "Visitor",
    "add_arguments",
    "check_compiled_tasks",
    "errors_once",
    "from_arguments",
    "parse_args",
    "thread_level",
]
