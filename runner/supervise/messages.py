"""Requests to the supervision process, its results, their transfer, and its errors.

Requests and results are plain dataclasses. On the stream socket a message is four bytes of length,
then JSON.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from runner.errors import RunnerError
from runner.figure.number import CutNumber, number_at
from runner.figure.unit import CLOCK, LABEL, UNKNOWN, Unit, unit_around
from runner.guard import CpuTimes, Culprit, Foreign
from runner.types import (
    ExecutableKind,
    ExecutablePlace,
    PrintedLines,
    finite,
    printed_from_json,
)

VERIFY = "verify"
"""Name of the pattern that confirms a result; a negated match does not count."""
ABSENT = "absent"
"""Name of the pattern that marks a result as wrong."""
LINE_LIMIT = 64 * 1024
"""Patterns see at most this many bytes of a line."""
JSON_LIMIT = 1024 * 1024
"""Longer JSON lines (in bytes) are not parsed."""


@dataclass(frozen=True)
class ExecRequest:
    """One execution. ``env`` is the complete environment; ``argv[0]`` is searched in its PATH."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None = None
    """Working directory; None: the caller's directory at the time of the call."""
    stdin: str | None = None
    """Path of a file for standard input; None: /dev/null."""
    fifo: str | None = None
    """Path of an empty named pipe; a rank that waits to read it is reported, too."""
    timeout_s: float | None = None
    grace_s: float = 3.0
    """Seconds between SIGTERM and SIGKILL; mpirun 4.1 needs 2 to end ranks that ignore SIGTERM."""
    linger_s: float = 0.25
    """Seconds that processes may outlive the launcher before they are ended."""
    patterns: dict[str, str] = field(default_factory=dict)
    """Regular expressions searched in every line of standard output, by name."""
    head_bytes: int = 16 * 1024
    tail_bytes: int = 64 * 1024
    rank_env: tuple[str, ...] = ()
    """Environment variables that hold a process's rank; the first set one counts."""
    ranks: int = 0
    """Number of ranks to look for; 0: do not look."""
    variables: tuple[str, ...] = ()
    """Names of environment variables to read in each rank."""
    ready_file: str | None = None
    """A file that the MPI library writes at the end of its initialisation, or None.

    The affinity of the ranks is then read. Without such a file looks begin at the start.
    """
    own_pids: tuple[int, ...] = ()
    """Running processes that belong to the cluster definition; their load is not foreign."""
    own_names: tuple[str, ...] = ()
    """Names of processes whose load is not foreign, also if they begin during the execution."""
    mark: str = ""
    """Lines of standard error that match this regular expression are kept separately; "": none.

    They are :attr:`ExecResult.marked`.
    """
    judged_cpus: tuple[int, ...] | None = None
    """CPUs on which foreign load counts; None: all CPUs of the machine.

    The program stays on these CPUs because it inherits the caller's affinity.
    """


@dataclass(frozen=True)
class PatternMatch:
    """How often a pattern was found, with text and groups of the last occurrence.

    The figures are those of the first group: ``first``, ``last``, and over all occurrences
    ``smallest``, ``largest`` and ``total``, or None if an occurrence is not a number. Times with a
    printed unit are converted to seconds; the unit prefix of a rate is resolved.
    """

    count: int
    text: str
    groups: tuple[str | None, ...]
    first: float | None = None
    last: float | None = None
    smallest: float | None = None
    largest: float | None = None
    total: float | None = None
    unit: Unit = UNKNOWN
    """The unit of the figure in the last line."""
    line: str = ""
    """The last line, at most :data:`LINE_EXCERPT` characters around the number, or around the
    match of a pattern without a group."""
    column: int = 0
    """The position of the number, or of the match, in ``line``."""
    cut: str = ""
    """The first line of which only a part of a number matched; "": none."""

    def and_then(self, other: PatternMatch) -> PatternMatch:
        """The match with one more occurrence, ``other``."""
        every = self.total is not None and other.last is not None
        return replace(
            other,
            count=self.count + 1,
            first=self.first,
            smallest=min(self.smallest or 0.0, other.last or 0.0) if every else None,
            largest=max(self.largest or 0.0, other.last or 0.0) if every else None,
            total=(self.total or 0.0) + (other.last or 0.0) if every else None,
            cut=self.cut or other.cut,
        )

    @classmethod
    def of(cls, match: re.Match[str], separator: str = "") -> PatternMatch:
        """One occurrence; ``separator``: characters that the pattern names beside its group."""
        text, groups = match.group(), match.groups()
        has_group = bool(groups) and groups[0] is not None
        line, (start, end) = match.string, match.span(1 if has_group else 0)
        low = max(start - LINE_EXCERPT // 2, 0)
        excerpt = line[low : low + LINE_EXCERPT]
        if not has_group:
            return cls(1, text, groups, line=excerpt, column=start - low)
        try:
            number = number_at(line, start, end, separator)
        except CutNumber:
            return cls(1, text, groups, line=excerpt, column=start - low, cut=excerpt.strip())
        if number is None:
            return cls(1, text, groups, line=excerpt, column=start - low)
        before = line[max(number.start - LABEL, 0) : number.start]
        unit = unit_around(before, line[number.end : number.end + LABEL])
        if number.clock:
            unit = CLOCK
        value = finite(unit.base_value(number.value))
        return cls(
            1, text, groups, value, value, value, value, value, unit, excerpt, number.start - low
        )


LINE_EXCERPT = 200
"""Characters of a line that are kept with a figure."""


@dataclass(frozen=True)
class RankSnapshot:
    """One rank according to /proc; ``cpus`` is its affinity ("0", "0-1").

    ``variables`` are the requested variables in its initial environment.
    """

    rank: int
    pid: int
    cpus: str
    exe: str
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramFile:
    """A file whose code a rank ran, with the SHA-256 of that code.

    ``changed_ns`` is when its content was last changed (ns since the epoch). ``argv`` and ``cwd``
    say how the rank was started (only of a ``program``).
    """

    path: str
    sha256: str
    kind: ExecutableKind
    place: ExecutablePlace
    changed_ns: int
    argv: tuple[str, ...] = ()
    cwd: str = ""


@dataclass(frozen=True)
class Leftover:
    """A process that outlived the launcher and had to be ended."""

    pid: int
    name: str


@dataclass(frozen=True)
class ExecResult:
    """The observations, times in seconds; docs/explanation/measuring.md defines each clock."""

    exit_code: int | None
    """Exit code of the launcher; None if a signal ended it."""
    signal: int | None
    timed_out: bool
    interrupted: bool
    wall_s: float
    """From just before exec to the end of the launcher."""
    started_at: float
    """Seconds since the epoch."""
    cpu_s: float
    """User + system time of the launcher and all its descendants, orphans included."""
    server_cpu_s: float
    """The supervisor's own CPU time in the same window."""
    tuner_cpu_s: float
    """CPU time of the calling process while it waited."""
    declared_cpu_s: float
    """CPU time of ``own_pids`` and ``own_names`` (resolution: one tick)."""
    max_rss_bytes: int
    """Largest resident set of one process; at least the supervision process's (about 12 MB)."""
    load1: float
    window_s: float
    """Length of the window between the two snapshots."""
    before: CpuTimes
    after: CpuTimes
    foreign: Foreign
    culprits: tuple[Culprit, ...]
    """Processes that used the machine if ``foreign.exceeded``; ended ones cannot be named."""
    stdout_head: str
    stdout_tail: str
    stderr_head: str
    stderr_tail: str
    output_bytes: int
    """Standard output and standard error together."""
    matches: dict[str, PatternMatch]
    """The patterns that matched."""
    json_line: dict[str, Any] | None
    """The last line of standard output that holds a JSON object."""
    ranks: tuple[RankSnapshot, ...] | None
    """All expected ranks in order; None if some were not seen."""
    leftovers: tuple[Leftover, ...]
    """Processes that outlived the launcher of a run that was not stopped."""
    marked: tuple[str, ...] = ()
    """The distinct lines of standard error with the request's ``mark``; not in its text."""
    init_s: float | None = None
    """From just before exec to the end of MPI_Init, in seconds; None if it was not seen."""
    printed: PrintedLines = field(default_factory=PrintedLines)
    """The lines of standard output as a set."""
    waits_for_input: bool = False
    """A rank was ended because it waited for standard input that could never come."""
    launcher_stuck: bool = False
    """True if the launcher was ended because it kept running after its ranks."""
    inner_launcher: tuple[str, ...] = ()
    """Command line of a launcher started by a rank, for which the run was ended; empty: none."""
    stops: int = 0
    """How often the supervision process was stopped; if so, the times are not the program's."""
    files: tuple[ProgramFile, ...] = ()
    """The files with the code of the ranks that were seen."""

    @property
    def stderr(self) -> str:
        """Standard error; of a long one the beginning and the end."""
        if len(self.stderr_tail) <= len(self.stderr_head):
            return self.stderr_head
        if self.stderr_tail.startswith(self.stderr_head):
            return self.stderr_tail
        return f"{self.stderr_head}\n{self.stderr_tail}"


def request_to_json(request: ExecRequest) -> dict[str, Any]:
    """The request as JSON types; all its fields are plain."""
    return dict(vars(request))


def request_from_json(data: dict[str, Any]) -> ExecRequest:
    """Inverse of :func:`request_to_json`."""
    for key in ("argv", "rank_env", "variables", "own_pids", "own_names"):
        data[key] = tuple(data[key])
    if data["judged_cpus"] is not None:
        data["judged_cpus"] = tuple(data["judged_cpus"])
    return ExecRequest(**data)


def result_to_json(result: ExecResult) -> dict[str, Any]:
    """The result as JSON types."""
    data = dict(vars(result))
    for key in ("before", "after", "foreign", "printed"):
        data[key] = vars(data[key])
    for key in ("culprits", "leftovers", "files"):
        data[key] = [vars(one) for one in data[key]]
    data["matches"] = {name: asdict(match) for name, match in result.matches.items()}
    data["ranks"] = None if result.ranks is None else [vars(rank) for rank in result.ranks]
    return data


def result_from_json(data: dict[str, Any]) -> ExecResult:
    """Inverse of :func:`result_to_json`."""
    data["before"] = CpuTimes(**data["before"])
    data["after"] = CpuTimes(**data["after"])
    data["foreign"] = Foreign(**data["foreign"])
    data["culprits"] = tuple(Culprit(**c) for c in data["culprits"])
    data["marked"] = tuple(data["marked"])
    data["inner_launcher"] = tuple(data["inner_launcher"])
    data["printed"] = printed_from_json(data["printed"])
    data["leftovers"] = tuple(Leftover(**p) for p in data["leftovers"])
    data["files"] = tuple(ProgramFile(**{**f, "argv": tuple(f["argv"])}) for f in data["files"])
    data["matches"] = {
        name: PatternMatch(**{**m, "groups": tuple(m["groups"]), "unit": Unit(**m["unit"])})
        for name, m in data["matches"].items()
    }
    if data["ranks"] is not None:
        data["ranks"] = tuple(RankSnapshot(**r) for r in data["ranks"])
    return ExecResult(**data)


_LENGTH = struct.Struct(">I")


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one message; raises ``OSError`` if the other end is gone."""
    data = json.dumps(message).encode("ascii")
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """The next message; None if the other end is gone."""
    head = _exactly(sock, _LENGTH.size)
    if head is None:
        return None
    data = _exactly(sock, _LENGTH.unpack(head)[0])
    if data is None:
        return None
    message: dict[str, Any] = json.loads(data)
    return message


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = sock.recv(size - len(parts))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


class StartError(RunnerError):
    """The program could not be started; ``errno`` is the system's error number."""

    def __init__(self, program: str, step: str, place: str, errno: int) -> None:
        self.errno = errno
        reason = os.strerror(errno) if errno else "it is not a valid command"
        what = {
            "cwd": f"working directory {place!r} cannot be entered: {reason}; "
            "name a directory that exists and may be entered",
            "stdin": f"standard input {place!r} cannot be read: {reason}; name a readable file",
            "exec": f"program {program!r} cannot be started: {reason}; "
            "expected an executable file, given by path or found in PATH "
            "(a script needs a first line such as #!/bin/sh)",
        }
        super().__init__(what[step], code="program.not_started")


class SupervisorLoss(RunnerError):
    """The supervision process died during a run; the run's processes have been ended."""


class UnkillableError(RunnerError):
    """Even SIGKILL does not end some processes of a run."""


class RunInterrupt(KeyboardInterrupt):
    """Ctrl-C was pressed during a run, and the run's processes have ended.

    ``result`` holds the observations; None if the program was not started. If
    ``result.interrupted`` is false, the run ended by itself and its figures count.
    """

    def __init__(self, result: object = None) -> None:
        super().__init__()
        self.result = result
