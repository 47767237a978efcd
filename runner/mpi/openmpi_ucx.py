"""UCX below Open MPI: what its log of a run says of variables and transports.

UCX writes the log at the start of a rank: the variables that it read, those that nothing read, and
the lanes (transport and device) of each kind of connection. The messages of ``pml/ucx`` go through
UCX; other users of UCX (one-sided communication, ``btl/uct``) do not make its variables count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.types import LIBRARY, LaunchSpec, ReadBack

UCX = "UCX_"
_LOG = "ucx-%h-%p.log"
"""Name of a rank's log: host and process id, so that ranks of several nodes do not collide."""
_LEVEL, _FILE = "UCX_LOG_LEVEL", "UCX_LOG_FILE"
_NAMES = re.compile(r"(pml|osc)$|(pml_ucx|osc_ucx|opal_common_ucx)_\w+$")
"""Library parameters that can bring UCX into a run."""
_READ = re.compile(r"UCX_\* env variables?: (.*)")
_UNUSED = re.compile(r"unused environment variables?: (.*)")
_LANES = re.compile(r"(self|intra-node|inter-node) cfg#\d+ (.*)")
_ERROR = re.compile(r"UCX +ERROR +(.*)")
_NO_WAY = re.compile(r"UCX +ERROR +no [a-z ]*transport to [^:]*: (.*)")
_TRANSPORTS = {
    "TCP": {"tcp"},
    "CMA": {"cma"},
    "SYSV": {"sysv"},
    "POSIX": {"posix"},
    "MM": {"sysv", "posix", "xpmem"},
}
"""Variables ``UCX_NAME_*`` act only if a lane uses one of these transports."""
_LANE = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.:-]+)")
_MOST_BYTES = 256 * 1024
"""At most so much of each log is read."""


@dataclass(frozen=True)
class UcxLog:
    """The logs of all ranks of one run.

    ``read`` maps the variables that UCX read to their values, ``unused`` those that it did not use
    to its hint ("" if there is none). ``lanes`` maps ``intra-node`` and ``inter-node`` to the
    transports and devices, such as ("sysv/memory", "cma/memory").
    """

    ranks: int
    read: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)
    lanes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def logging_ucx(spec: LaunchSpec, scratch: Path, readable: bool) -> dict[str, str]:
    """Variables that make UCX write a log for each rank; empty if UCX has no part in the launch.

    ``readable``: whether files in ``scratch`` that any rank writes can be read here. UCX ends a
    program whose log cannot be opened, so nothing is asked of ranks on other machines.
    """
    named = any(name.startswith(UCX) for name in spec.variables)
    words = [*spec.of(LIBRARY), *spec.launch_options]
    if not readable or not (named or any(_NAMES.match(word) for word in words)):
        return {}
    return {_LEVEL: "info", _FILE: str(scratch / _LOG)}


def read_ucx_log(scratch: Path) -> UcxLog | None:
    """What the ranks' logs say; None if there is no log: no rank used UCX, or none was asked."""
    texts = _texts(scratch)
    return parse_ucx_log(texts) if texts else None


def ucx_complaint(scratch: Path) -> str:
    """The first error in the logs, as a sentence; "" if there is none."""
    for text in _texts(scratch):
        if found := _NO_WAY.search(text):
            return (
                f"UCX found no transport between two ranks ({found[1].strip()}); UCX_NET_DEVICES "
                "and UCX_TLS say which devices and transports it may use"
            )
        if found := _ERROR.search(text):
            return f"UCX: {found[1].strip()}"
    return ""


def _texts(scratch: Path) -> list[str]:
    texts = []
    for path in sorted(scratch.glob(_LOG.replace("%h", "*").replace("%p", "*"))):
        with path.open(errors="replace") as file:
            texts.append(file.read(_MOST_BYTES))
    return texts


def parse_ucx_log(texts: list[str]) -> UcxLog:
    """The logs of several ranks as one; lines that are not understood are skipped."""
    read: dict[str, str] = {}
    unused: dict[str, str] = {}
    lanes: dict[str, dict[str, None]] = {}
    for line in "\n".join(texts).splitlines():
        if found := _READ.search(line):
            pairs = (word.partition("=") for word in found[1].split())
            read |= {name: value for name, sign, value in pairs if sign}
        elif found := _UNUSED.search(line):
            unused |= _unused(found[1])
        elif (found := _LANES.search(line)) and found[1] != "self":
            lanes.setdefault(found[1], {}).update(dict.fromkeys(_LANE.findall(found[2])))
    return UcxLog(len(texts), read, unused, {kind: tuple(names) for kind, names in lanes.items()})


def _unused(text: str) -> dict[str, str]:
    """``UCX_FOO (maybe: UCX_TLS?)``, or several names, with the hint of each."""
    found = re.findall(r"(UCX_\w+)(?: \((maybe: [^)]*)\))?", re.sub(r"\(set UCX_.*", "", text))
    return dict(found)


def ucx_variables(
    asked: Mapping[str, str], log: UcxLog | None, carries: bool
) -> dict[str, ReadBack]:
    """State of the requested UCX variables, by UCX's own account.

    ``carries``: whether UCX carries the messages (``pml/ucx``); if not, its variables are inactive.
    Without a log nothing is said of the others.
    """
    states = {}
    for name, value in asked.items():
        if not name.startswith(UCX):
            continue
        if not carries:
            states[name] = ReadBack("inactive", value, source="UCX carries no messages here")
        elif log is not None and name not in (_LEVEL, _FILE):
            states[name] = _state(name, value, log)
    return states


def _state(name: str, value: str, log: UcxLog) -> ReadBack:
    if name in log.unused:
        hint = f" ({log.unused[name]})" if log.unused[name] else ""
        return ReadBack("inactive", value, source=f"UCX says that nothing uses it{hint}")
    if name not in log.read:
        return ReadBack("altered", value, "(not read)", f"UCX's log of {log.ranks} ranks")
    part = name.split("_")[1]
    used = {lane.partition("/")[0] for lanes in log.lanes.values() for lane in lanes}
    if log.lanes and part in _TRANSPORTS and not _TRANSPORTS[part] & used:
        why = f"no connection uses {' or '.join(sorted(_TRANSPORTS[part]))}"
        return ReadBack("inactive", value, log.read[name], why)
    effective = log.read[name]
    state = "in force" if effective == value else "altered"
    return ReadBack(state, value, effective, f"UCX's log of {log.ranks} ranks")  # type: ignore[arg-type]
