"""The components of Open MPI that serve collectives, and the library's log of them.

A collective is served by the component with the highest priority that implements it and is enabled
for the communicator. With ``coll_base_verbose=9`` each rank writes one line for each candidate of
each communicator to standard error; the supervisor keeps these lines separately.

The log is requested only if a launch sets the priority of a component, and only within one node.
Between nodes coll/han writes a line for each call at this level, which would be measured with the
program. No level names the algorithms of coll/tuned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from runner.mpi.library import ParamInfo
from runner.types import LIBRARY, SERVED_BY, LaunchSpec, ReadBack

COMPONENT_LINE = r"\] coll:base:comm_select: |; disqualifying myself"
"""Regular expression of the lines of the log."""
_VERBOSE, _LEVEL = "coll_base_verbose", "9"
_COMMON_OPERATIONS = ("allreduce", "barrier", "bcast", "reduce")
_DEFAULT_COMPONENT = "tuned"
SERVES: Mapping[str, tuple[str, ...]] = {
    _DEFAULT_COMPONENT: (
        *("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast"),
        *("exscan", "gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scan"),
        "scatter",
    ),
    "adapt": ("bcast", "reduce"),
    "sm": _COMMON_OPERATIONS,
    "xhc": _COMMON_OPERATIONS,
    "han": ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter"),
    "acoll": ("allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "reduce"),
    "ucc": (
        *("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast"),
        *("gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter"),
    ),
}
"""The collectives of each component that has parameters (in 4.1, 5.0 and 6.0)."""
_PARAMETER = re.compile(rf"coll_({'|'.join(SERVES)})_(?:use_(?:simple_)?)?(\w+)")
_CHOOSES = re.compile(rf"coll_({'|'.join(SERVES)})_(priority|enable)")
"""Names of the parameters that select a component."""
_OPERATIONS = sorted(SERVES[_DEFAULT_COMPONENT], key=len, reverse=True)
_SELECTION = re.compile(
    r"coll:base:comm_select: selecting +(\w{1,40}), priority +([0-9]{1,9}), (Enabled|Disabled)"
)


@dataclass(frozen=True)
class CollectiveComponents:
    """The components of a run: those enabled for a communicator, and the others that were tried.

    Both map the component to its priority.
    """

    active: dict[str, int] = field(default_factory=dict)
    inactive: dict[str, int] = field(default_factory=dict)

    def server(self, operation: str) -> str:
        """The component that serves a collective; "" if there is none or two have the same
        priority."""
        able = {p: c for c, p in self.active.items() if operation in SERVES.get(c, ())}
        best = max(able, default=-1)
        equal = [c for c, p in self.active.items() if p == best and operation in SERVES.get(c, ())]
        return equal[0] if len(equal) == 1 else ""

    @property
    def words(self) -> str:
        """The servers of the collectives for readers, such as ``sm: bcast, reduce; tuned: the
        others``."""
        operations_by_server: dict[str, list[str]] = {}
        for operation in SERVES[_DEFAULT_COMPONENT]:
            operations_by_server.setdefault(self.server(operation), []).append(operation)
        operations_by_server.pop("", None)
        parts = [
            f"{c}: {', '.join(operations)}"
            for c, operations in operations_by_server.items()
            if c != _DEFAULT_COMPONENT
        ]
        parts += (
            [f"{_DEFAULT_COMPONENT}: {'the others' if parts else 'all'}"]
            if _DEFAULT_COMPONENT in operations_by_server
            else []
        )
        return "; ".join(parts)


def component_of(parameter: str) -> str:
    """The component that a parameter belongs to; "" if no component with collectives has it."""
    match = _PARAMETER.fullmatch(parameter)
    return match[1] if match else ""


def operations_of(parameter: str) -> tuple[str, ...]:
    """The collectives that a parameter can affect; empty if it is not about collectives."""
    match = _PARAMETER.fullmatch(parameter)
    if match is None:
        return ()
    candidates = (o for o in _OPERATIONS if match[2] == o or match[2].startswith(f"{o}_"))
    one = next(candidates, None)
    return (one,) if one else SERVES[match[1]]


def component_priorities(params: Mapping[str, ParamInfo]) -> dict[str, int]:
    """The installed components by priority, the highest first."""
    priorities = {}
    for component in SERVES:
        info = params.get(f"coll_{component}_priority")
        if info is not None and re.fullmatch("[0-9]{1,9}", info.default):
            priorities[component] = int(info.default)
    return dict(sorted(priorities.items(), key=lambda item: -item[1]))


def idle_parameters(params: Mapping[str, ParamInfo]) -> dict[str, str]:
    """Parameters without effect because coll/tuned has the higher priority, each with the reason.

    Parameters that select a component are left out.
    """
    priorities = component_priorities(params)
    top_priority = priorities.get(_DEFAULT_COMPONENT, 0)
    low = {c: p for c, p in priorities.items() if c != _DEFAULT_COMPONENT and p <= top_priority}
    return {
        name: f"coll/{c} has priority {low[c]}, coll/{_DEFAULT_COMPONENT} {top_priority}"
        for name in params
        if (c := component_of(name)) in low and not _CHOOSES.fullmatch(name)
    }


def log_options(
    spec: LaunchSpec, one_node: bool, inherited_names: Collection[str] = ()
) -> tuple[str, ...]:
    """Command-line arguments that request the log.

    Empty if the launch does not choose components, or if the user has set the level.
    ``inherited_names`` are the parameters set by the environment or a file.
    """
    names = {*spec.of(LIBRARY), *spec.expected, *spec.launch_options, *inherited_names}
    chooses = any(map(_CHOOSES.fullmatch, names))
    is_set = _VERBOSE in names
    if is_set or not (spec.read_back and one_node and spec.ranks > 1 and chooses):
        return ()
    return ("--mca", _VERBOSE, _LEVEL)


def parse_component_log(lines: Iterable[str]) -> CollectiveComponents | None:
    """The components in the log; None if no line belongs to it."""
    active: dict[str, int] = {}
    inactive: dict[str, int] = {}
    for line in lines:
        if match := _SELECTION.search(line):
            kind = active if match[3] == "Enabled" else inactive
            kind[match[1]] = max(int(match[2]), kind.get(match[1], 0))
    return CollectiveComponents(active, inactive) if active or inactive else None


def collective_parameters(
    read_back: Mapping[str, ReadBack], components: CollectiveComponents
) -> dict[str, ReadBack]:
    """The parameters of components, with the component that serves their collectives.

    A parameter in force is ``inactive`` if its component serves no collective.
    """
    states = {}
    for name, back in read_back.items():
        component = component_of(name)
        if not component or back.state != "in force":
            continue
        servers = {o: components.server(o) for o in operations_of(name)}
        mine = [o for o, server in servers.items() if server == component]
        why = f"coll/{component} serves {', '.join(mine)}"
        state = "in force"
        if component not in components.active:
            state, why = "inactive", f"the library selected coll/{component} for no communicator"
        elif not mine and all(servers.values()):
            others = sorted({f"coll/{server}" for server in servers.values()})
            state, why = "inactive", f"{', '.join(others)} serves {', '.join(servers)} here"
        elif not mine:
            continue
        states[name] = ReadBack(state, back.requested, back.effective, why)  # type: ignore[arg-type]
    return states


def served_collectives(
    read_back: Mapping[str, ReadBack], lines: Iterable[str]
) -> dict[str, ReadBack]:
    """Additions of the log to a read-back: the servers of the collectives, and idle parameters.

    Empty if no line belongs to the log.
    """
    components = parse_component_log(lines)
    if components is None:
        return {}
    state = ReadBack("in force", "", components.words, "the library's log of its choice")
    return {**collective_parameters(read_back, components), SERVED_BY: state}
