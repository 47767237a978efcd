"""UCX below Open MPI: variables and transports in its log of a run.

UCX writes the log at the start of a rank: the variables that it read, those that nothing read, and
the lanes (transport and device) and protocols of each kind of connection. Messages of ``pml/ucx``
and one-sided calls of ``osc/ucx`` go through UCX; ``btl/uct`` does not use its variables.

Each rank writes a log file if this machine can read it. Ranks on other machines write to standard
error, which the launcher forwards: UCX ends a program whose log file it cannot open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.mpi.openmpi.protocols import Tables, parse_tables, rendezvous_from, table_words
from runner.types import LIBRARY, PROTOCOLS, LaunchSpec, ReadBack

UCX = "UCX_"
_LOG = "ucx-%h-%p.log"
"""Name of a rank's log: host and process id, so that ranks of several nodes do not collide."""
_LEVEL, _FILE, _TABLES = "UCX_LOG_LEVEL", "UCX_LOG_FILE", "UCX_PROTO_INFO"
_LOG_SETTINGS = {_LEVEL: "info", _TABLES: "y"}
_STDERR = "stderr"
"""The variable's value that means standard error."""
UCX_LINE = r"^\[[0-9]+\.[0-9]{6}\] \[[^][ ]{1,255}:[0-9]+ *:[0-9]+\] "
"""A line of such a log on standard error, with time, host, process and thread."""
_PROCESS = re.compile(r"\[([^][ ]+:[0-9]+) *:[0-9]+\]")
_LOG_REFUSAL = re.compile(r"failed to open '[^'\n]*/ucx-[^'\n]*\.log' for writing")
_NAMES = re.compile(r"(pml|osc)$|(pml_ucx|osc_ucx|opal_common_ucx)_\w+$")
"""Library parameters that can bring UCX into a run."""
_READ = re.compile(r"UCX_\* env variables?: (.*)")
_UNUSED_LINE = re.compile(r"unused environment variables?: (.*)")
_LANES = re.compile(
    r"(?:(self|intra-node|inter-node) cfg#\d+|ep_cfg\[\d+\]:) ((?:\w+\([^)]*\) *)+)"
)
"""What a kind of connection uses; UCX 1.13 and older do not name the kind."""
_WINDOW_LANES = re.compile(r"rma(?:_am)?\(([^)]*)\)")
_ERROR = re.compile(r"UCX +ERROR +(.*)")
_NO_WAY = re.compile(r"UCX +ERROR +no [a-z ]*transport to [^:]*: (.*)")
_TRANSPORTS = {
    "TCP": {"tcp"},
    "CMA": {"cma"},
    "SYSV": {"sysv"},
    "POSIX": {"posix"},
    "MM": {"sysv", "posix", "xpmem"},
}
"""Variables ``UCX_NAME_*`` take effect only if a lane uses one of these transports."""
_LANE = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.:-]+)")
_MOVES = re.compile(r"UCX_(RNDV|ZCOPY|BCOPY|PROTO)_")
"""Variables that may change the sizes from which a protocol is used."""
UNNAMED = "unnamed"
"""The kind of all connections in logs that do not name it."""
_MOST_TABLES = 64
"""With more ranks on other machines no tables are requested: the launcher forwards each line."""
_MOST_BYTES = 256 * 1024
"""At most this much of each log is read."""


@dataclass(frozen=True)
class UcxLog:
    """The logs of all ranks of one run.

    ``read`` maps the variables that UCX read to their values, ``unused_hints`` the unused variables
    to its hint ("" if there is none). ``lanes`` maps ``intra-node`` and ``inter-node``, or
    :data:`UNNAMED`, to the transports and devices, such as ("sysv/memory", "cma/memory").
    ``window_lanes`` are those of windows of ``osc/ucx``. ``tables`` are the protocols by message
    size.
    """

    ranks: int
    read: dict[str, str] = field(default_factory=dict)
    unused_hints: dict[str, str] = field(default_factory=dict)
    lanes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    window_lanes: tuple[str, ...] = ()
    tables: Tables = field(default_factory=dict)


def uses_ucx(spec: LaunchSpec, inherited_names: Iterable[str] = ()) -> bool:
    """True if a launch may use UCX, judged by the names that it sets.

    ``inherited_names`` are the names of library parameters in force that the launch does not set.
    """
    if any(name.startswith(UCX) for name in spec.variables):
        return True
    words = (*spec.of(LIBRARY), *spec.expected, *spec.launch_options, *inherited_names)
    return any(_NAMES.match(word) for word in words)


def logging_ucx(scratch: Path | None, ranks: int) -> dict[str, str]:
    """Variables that make UCX write a log for each rank, to ``scratch`` or (None) to stderr.

    The log is a few lines at the start of each rank and a table for each kind of connection, not
    for each connection. Nothing follows later.
    """
    if scratch is not None:
        return _LOG_SETTINGS | {_FILE: str(scratch / _LOG)}
    settings = _LOG_SETTINGS if ranks <= _MOST_TABLES else {_LEVEL: _LOG_SETTINGS[_LEVEL]}
    return settings | {_FILE: _STDERR}


def ucx_logs(scratch: Path, report_lines: Iterable[str] = ()) -> list[str]:
    """The log of each rank, from files in ``scratch`` and the standard-error lines
    ``report_lines``."""
    texts = _texts(scratch)
    own: dict[str, list[str]] = {}
    for line in report_lines:
        if re.match(UCX_LINE, line) and (process := _PROCESS.search(line)):
            own.setdefault(process[1], []).append(line)
    return texts + ["\n".join(lines) for lines in own.values()]


def refused_log(stderr: str) -> bool:
    """True if UCX ended a rank because it could not open its log."""
    return _LOG_REFUSAL.search(stderr) is not None


def ucx_complaint(texts: Iterable[str]) -> str:
    """The first error in the logs, as a sentence; "" if there is none."""
    for text in texts:
        if match := _NO_WAY.search(text):
            return (
                f"UCX found no transport between two ranks ({match[1].strip()}); UCX_NET_DEVICES "
                "and UCX_TLS say which devices and transports it may use"
            )
        if match := _ERROR.search(text):
            return f"UCX: {match[1].strip()}"
    return ""


def _texts(scratch: Path) -> list[str]:
    texts = []
    for path in sorted(scratch.glob(_LOG.replace("%h", "*").replace("%p", "*"))):
        with path.open(encoding="utf-8", errors="replace") as file:
            texts.append(file.read(_MOST_BYTES))
    return texts


def parse_ucx_log(texts: list[str]) -> UcxLog:
    """The logs of several ranks, merged; malformed lines are skipped."""
    read: dict[str, str] = {}
    hints: dict[str, str] = {}
    lanes: dict[str, dict[str, None]] = {}
    windows: dict[str, None] = {}
    for line in "\n".join(texts).splitlines():
        if match := _READ.search(line):
            pairs = (word.partition("=") for word in match[1].split())
            read |= {name: value for name, sign, value in pairs if sign}
        elif match := _UNUSED_LINE.search(line):
            hints |= _unused_hints(match[1])
        elif (match := _LANES.search(line)) and not _is_own(match):
            operations = "".join(_WINDOW_LANES.findall(match[2]))
            windows |= dict.fromkeys(_LANE.findall(operations))
            if "tag(" in match[2]:
                kind = match[1] or UNNAMED
                lanes.setdefault(kind, {}).update(dict.fromkeys(_LANE.findall(match[2])))
    kinds = {kind: tuple(names) for kind, names in lanes.items()}
    return UcxLog(len(texts), read, hints, kinds, tuple(windows), parse_tables(texts))


def _is_own(connection: re.Match[str]) -> bool:
    """Whether it is a rank's connection to itself."""
    return connection[1] == "self" or (not connection[1] and "self/" in connection[2])


def _unused_hints(text: str) -> dict[str, str]:
    """The hint of each variable in ``UCX_FOO (maybe: UCX_TLS?)``, or in a list of these."""
    pairs = re.findall(r"(UCX_\w+)(?: \((maybe: [^)]*)\))?", re.sub(r"\(set UCX_.*", "", text))
    return dict(pairs)


def ucx_variables(
    requests: Mapping[str, str], log: UcxLog | None, carries: bool
) -> dict[str, ReadBack]:
    """State of the requested UCX variables according to UCX's log.

    ``carries``: UCX carries the messages (``pml/ucx``). If neither these nor one-sided calls
    (``osc/ucx``) use it, its variables are inactive. Without a log the others are left out.
    """
    states = {}
    carries = carries or (log is not None and bool(log.window_lanes))
    for name, value in requests.items():
        if not name.startswith(UCX):
            continue
        if not carries:
            states[name] = ReadBack("inactive", value, source="UCX carries no messages here")
        elif log is not None and name not in (*_LOG_SETTINGS, _FILE):
            states[name] = _state(name, value, log)
    return states


def _state(name: str, value: str, log: UcxLog) -> ReadBack:
    if name in log.unused_hints:
        hint = f" ({log.unused_hints[name]})" if log.unused_hints[name] else ""
        return ReadBack("inactive", value, source=f"UCX says that nothing uses it{hint}")
    if name not in log.read:
        return ReadBack("altered", value, "(not read)", f"UCX's log of {log.ranks} ranks")
    part = name.split("_")[1]
    lanes = {*log.window_lanes}.union(*log.lanes.values())
    transports = {lane.partition("/")[0] for lane in lanes}
    if lanes and part in _TRANSPORTS and not _TRANSPORTS[part] & transports:
        why = f"no connection uses {' or '.join(sorted(_TRANSPORTS[part]))}"
        return ReadBack("inactive", value, log.read[name], why)
    effective = log.read[name]
    state = "in force" if effective == value else "altered"
    source = f"UCX's log of {log.ranks} ranks{_switch_points(name, log)}"
    return ReadBack(state, value, effective, source)  # type: ignore[arg-type]


def _switch_points(name: str, log: UcxLog) -> str:
    """The size from which messages are announced in this run, for a variable that may change it.

    A table that equals the default's does not make the variable inactive: it may affect messages
    that no table of this run covers.
    """
    if not _MOVES.match(name) or not log.tables:
        return ""
    points = (f"{call} from {first}" for call, first in rendezvous_from(log.tables).items())
    return f"; rendezvous: {', '.join(points)}"


def ucx_protocols(log: UcxLog | None) -> dict[str, ReadBack]:
    """The protocols of each call by message size, under names such as
    ``protocols of MPI_Send within a node``; empty if the log has none.
    """
    if log is None:
        return {}
    return {
        f"{PROTOCOLS}{call}": ReadBack("in force", "", table_words(tables), _TABLES)
        for call, tables in log.tables.items()
    }
