"""One-sided communication of Open MPI: the component of the framework ``osc`` that serves windows.

Each window gets its component when it is created, so a run's registered parameters do not show it.
A verbose framework reports it on standard error: 5.0 on selection, 4.1 when ``osc/rdma`` or
``osc/pt2pt`` frees a window. With 4.1, UCX's log shows ``osc/ucx``, and nothing shows ``osc/sm``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runner.mpi.openmpi.ucx import UcxLog
from runner.types import LaunchSpec, ReadBack

VERBOSE = "osc_base_verbose"
_LEVEL = "10"
"""The lowest level that names components; from 40 on each window prints many lines."""
WINDOW_LINE = (
    r"^\[[^][ ]{1,255}:[0-9]+\] (?:mca: base: |select: component |[a-z0-9]+ component destroying "
    r"|/\S+osc_ucx_component\.c:)"
)
"""A line that the verbose framework writes."""
_SELECTION = re.compile(
    r"\] (?:select: component ([a-z0-9]{1,40}) selected|([a-z0-9]{1,40}) component destroying)"
)
_MOST = 16
"""Limit for a framework's components; a program may print lines that look like the library's."""
_OF_COMPONENT = re.compile(r"osc_([a-z0-9]+)_\w+")
_COMMON_PARTS = ("base",)
_SOURCE = "verbose output of the framework osc"


def watching_windows(spec: LaunchSpec) -> dict[str, str]:
    """The parameter that makes the library name the components; empty if it is not requested."""
    names = (*spec.of("mca"), *spec.launch_options)
    is_wanted = spec.read_back and spec.watch_windows and VERBOSE not in names
    return {VERBOSE: _LEVEL} if is_wanted else {}


def components_of(lines: Iterable[str], log: UcxLog | None = None) -> tuple[str, ...]:
    """The components that served windows, in the order of their first window; at most 16.

    ``log`` shows connections for one-sided calls if ``osc/ucx`` is among them.
    """
    matches = (_SELECTION.search(line) for line in lines)
    names = [match[1] or match[2] for match in matches if match]
    names += ["ucx"] if log is not None and log.window_lanes else []
    return tuple(dict.fromkeys(names))[:_MOST]


def windows_of(components: tuple[str, ...], names_every_window: bool) -> ReadBack | None:
    """The read-back of the components in a watched run; None if no window was seen.

    ``names_every_window``: the library names the component of every window.
    """
    if not components:
        return None
    source = _SOURCE if names_every_window else f"{_SOURCE}, which does not name osc/sm"
    return ReadBack("in force", "", ", ".join(components), source)


def without_windows(
    read_back: Mapping[str, ReadBack], components: tuple[str, ...]
) -> dict[str, ReadBack]:
    """Parameters of ``osc`` that served no window, as ``inactive``.

    Call it only for a run that was watched to its end, with a library that names the component of
    every window.
    """
    states = {}
    for name, back in read_back.items():
        part = _OF_COMPONENT.fullmatch(name)
        if (
            back.state != "in force"
            or not (name == "osc" or part)
            or (part and part[1] in _COMMON_PARTS)
        ):
            continue
        if not components:
            why = "the program makes no window"
        elif part and part[1] not in components:
            why = f"osc/{part[1]} serves no window; osc/{' and osc/'.join(components)} does"
        else:
            continue
        states[name] = ReadBack("inactive", back.requested, back.effective, why)
    return states
