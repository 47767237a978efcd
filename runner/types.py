"""The plain types that pass between the runner and its callers: LaunchSpec and RunRecord.

Both become JSON by :func:`dataclasses.asdict`. The module imports neither MPI nor numpy nor
autotune, so that the processes beside a measured program stay light.

:func:`all_finite` makes figures fit for JSON, which has neither NaN nor infinities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

ReadBackState = Literal["in force", "inactive", "altered", "unknown", "not observable"]
"""State of one requested parameter after a run (docs/explanation/design.md, "Launching and reading
back").

- ``in force``: the library reports the requested value.
- ``inactive``: the parameter's component was not opened, or carries no messages between these
  ranks; ``source`` says why.
- ``altered``: the library reports another value.
- ``unknown``: the library has no such parameter.
- ``not observable``: the library does not report it.
"""

RunState = Literal[
    "ok",
    "failed",  # exit code not 0, or killed by a signal that the supervisor did not send
    "timeout",  # stopped at our time limit: censored at ``wall_s``
    "unverified",  # exit code 0, but the verification pattern was not found
    "no_metric",  # exit code 0, but the metric pattern was not found
    "not_read_back",  # a requested parameter was altered or is unknown
    "no_mpi",  # the program ended without calling MPI_Init
    "singletons",  # N processes, each with its own world
    "launcher_inside",  # a rank started mpirun: one whole job per rank
    "foreign_load",  # another program used the machine; the figure does not count
    "launch_error",  # the launcher refused: slots, unknown option, missing program
    "interrupted",  # the caller stopped it
]

MetricChoice = Literal["max", "min", "last", "first", "sum", "mean"]
"""The figure of a run that counts: ``max`` if every rank prints its own time, ``min`` if every rank
prints its own rate (the slowest rank counts), ``last`` if the time so far is printed repeatedly,
``sum`` if each part prints its own.
"""

LIBRARY = "mca"
"""The kind of the library's own parameters: MCA parameters of Open MPI, variables of other
libraries.
"""

TRANSPORT = "transport"
"""Name of the transport in force in the read-back of a run."""
SERVED_BY = "collectives"
"""Name of the components that serve collectives in the read-back of a run, if seen."""
WINDOWS = "windows"
"""Name of the components that serve one-sided calls in the read-back of a run."""
PROTOCOLS = "protocols of "
"""Prefix of the names in the read-back that hold a call's protocols by message size."""

COMPILING = "note: compiling "
"""Prefix of the line on standard error of our programs that compile and store code."""

GUARD_STATES: frozenset[str] = frozenset({"foreign_load", "interrupted"})
"""States that say nothing about the setting: such a run is repeated and not counted against it."""


@dataclass(frozen=True)
class LaunchSpec:
    """One execution, completely described.

    ``parameters`` are native parameters by kind: kind -> name -> value as text. The kinds are those
    that the library's adapter accepts (:attr:`runner.mpi.base.Adapter.kinds`); :data:`LIBRARY` is
    the kind of the library's own parameters. ``placement`` maps ``map_by``, ``bind_to`` or
    ``rank_by`` to a policy. ``launch_options`` are fixed arguments of the cluster definition; they
    precede all other arguments and are not read back.
    """

    program: tuple[str, ...]
    ranks: int
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    placement: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the launcher."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables of every rank on every node: parameters, which are read back."""
    threads: int = 1
    """OpenMP threads that each rank should have; ``variables`` say so to the ranks."""
    expected: dict[str, str] = field(default_factory=dict)
    """Library parameters that a file or the environment should set: read back like those of
    :data:`LIBRARY`, but not put on the command line.
    """
    expected_variables: dict[str, str] = field(default_factory=dict)
    """Variables that a file should give every rank: read back, but not put on the command line."""
    launch_options: tuple[str, ...] = ()
    oversubscribe: bool = False
    clean_env: bool = False
    cwd: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Texts by file name. The run gets a folder of its own with these files as its working
    directory; with ``fresh_copy`` they are written into the copy.
    """
    fresh_copy: bool = False
    """True if the run gets a copy of ``cwd`` as its working directory, which is removed
    afterwards."""
    before: tuple[str, ...] = ()
    """Arguments of a command that is executed without a shell in the working directory before the
    run; it is not part of the run.
    """
    timeout_s: float | None = None
    metric: str | None = None
    """A regular expression with one group (a time), ``json:KEY`` for the key of the last JSON
    line, or None for wall time.
    """
    metric_rate: bool = False
    """True if the metric is a rate: larger is better. It counts as the time 1/rate."""
    metric_choice: MetricChoice = "max"
    """The figure that counts if the regular expression matches several times in one run."""
    verify: str | None = None
    """Regular expression that standard output must contain, or None for the exit code alone."""
    verify_absent: str | None = None
    """Regular expression that standard output must not contain."""
    exit_codes: tuple[int, ...] = (0,)
    """Exit codes of a successful launch."""
    read_back: bool = True
    require_mpi: bool = True
    stdin: str | None = None
    """Path of the file for rank 0's standard input; None: standard input is empty."""
    one_machine: bool = False
    """True if all nodes are on this machine (a testbed), which can then read the ranks' files."""

    watch_windows: bool = False
    """True if the components for one-sided calls are read back: the library then writes lines for
    each window.
    """

    def of(self, kind: str) -> dict[str, str]:
        """The parameters of one kind; empty if there are none."""
        return self.parameters.get(kind, {})


@dataclass(frozen=True)
class ReadBack:
    """State of one requested parameter, with its requested and effective values, normalised."""

    state: ReadBackState
    requested: str
    effective: str | None = None
    source: str | None = None


ExecutableKind = Literal["program", "library"]
"""``program``: the file that a rank was started from; ``library``: one of its own libraries."""
ExecutablePlace = Literal["here", "removed", "elsewhere"]
"""``removed``: the file was gone after the run, like a wrapper's temporary copy. ``elsewhere``: its
path is in another mount namespace (a container).
"""


@dataclass(frozen=True)
class Executable:
    """A file whose code ranks ran, with the SHA-256 (hexadecimal) of that code.

    ``argv`` and ``cwd`` say how the rank was started (only of a ``program``).
    """

    path: str
    sha256: str
    kind: ExecutableKind = "program"
    place: ExecutablePlace = "here"
    """``removed``: gone after the run; ``elsewhere``: in a container."""
    argv: tuple[str, ...] = ()
    cwd: str = ""


@dataclass(frozen=True)
class PrintedLines:
    """The lines of a run's standard output as a set, bounded (:mod:`runner.supervise.line_set`).

    ``long`` has the shapes with too many lines, by name: "NUMBER:SUM" of the lines not kept, "" if
    not summed. ``cut``: lines of further shapes were left out.
    """

    lines: tuple[str, ...] = ()
    long: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class RunRecord:
    """One execution as observed; times in seconds, ``started_at`` in seconds since the epoch."""

    state: RunState
    """``ok``, or why the run does not count."""
    reason: str = ""
    wall_s: float = 0.0
    code: str = ""
    """A finer reason than the state, such as ``metric.cut``; "" if the state says all."""
    metric_s: float | None = None
    """The program's own figure, in seconds; 1/rate if it prints a rate."""
    metric_unit: str = ""
    """The printed unit of a figure that is not a time, such as "GB/s"; "": seconds."""
    metric_rate: bool = False
    """True if the program prints a rate."""
    metric_count: int | None = None
    """How often the metric's regular expression matched; None if there is none."""
    exit_code: int | None = None
    signal: int | None = None
    verified: bool | None = None
    started_at: float = 0.0
    """Seconds since 1970."""
    cpu_s: float = 0.0
    """CPU time (user + system) of the launcher and everything below it."""
    foreign_cpu_s: float = 0.0
    """CPU time of other processes."""
    init_s: float | None = None
    """Seconds from the launch to the end of MPI_Init; None if it was not seen."""
    irq_s: float = 0.0
    """Interrupt time of the machine during the run: reported, not judged."""
    foreign_limit_s: float = 0.0
    load1: float = 0.0
    world_size: int | None = None
    read_back: dict[str, ReadBack] = field(default_factory=dict)
    """The read-back of each parameter from the library."""
    bindings: list[str] = field(default_factory=list)
    """CPU list of each rank that was seen, in order of rank ("0", "0-1")."""
    host: str = ""
    place: str = ""
    """Nodes and CPUs of the run; only runs at the same place are compared."""
    mpi_name: str = ""
    mpi_version: str = ""
    command: list[str] = field(default_factory=list)
    output_bytes: int = 0
    stdout_tail: str = ""
    stderr_tail: str = ""
    inherited: dict[str, str] = field(default_factory=dict)
    """MCA values that are in force although the spec does not name them, with their source."""
    extra: dict[str, Any] = field(default_factory=dict)
    """The program's last JSON line, if it printed one."""
    executables: list[Executable] = field(default_factory=list)
    """Executables of the ranks, as far as seen; a database stores them with the study, once."""
    printed: PrintedLines | None = None
    """Its lines of standard output, to be compared with those of other runs; None if unknown."""

    @property
    def value_s(self) -> float:
        """The figure that counts: the program's own figure if it has one, else wall time."""
        return self.wall_s if self.metric_s is None else self.metric_s

    @property
    def valid(self) -> bool:
        return self.state == "ok"

    @property
    def has_compiled(self) -> bool:
        """True if the program reports that it compiled code, which later runs load."""
        return COMPILING in self.stderr_tail


def printed_from_json(data: dict[str, Any]) -> PrintedLines:
    """Inverse of :func:`dataclasses.asdict`; raises LookupError, TypeError or ValueError."""
    lines, long = tuple(data["lines"]), dict(data["long"])
    if not all(isinstance(text, str) for text in (*lines, *long, *long.values())):
        raise TypeError("printed lines are text")
    return PrintedLines(lines, long, bool(data["cut"]))


def finite(value: float) -> float | None:
    """The number; None if it is NaN or infinite."""
    return value if math.isfinite(value) else None


def all_finite(value: Any) -> Any:
    """JSON data with :func:`finite` applied to every float; tuples become lists."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: all_finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [all_finite(inner) for inner in value]
    return value
