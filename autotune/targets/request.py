"""The request of a target: what the user gave, before anything was looked up.

``autotune.targets.resolve`` looks it up.
"""

from __future__ import annotations

from autotune.config.option import COMMAND, TEXT, FilePath, Request, late_option, option
from autotune.wording import parse_duration
from runner.types import MetricChoice

AUTO = "auto"
"""The metric of a request whose program's own figure is looked for."""


class TargetRequest(Request):
    """A target as the user gave it: a program, or an application that is known by name.

    A launcher line is understood as ``program``. ``timeout`` is in seconds or a text such as "10m".
    ``command`` is the command that makes the request, for its messages; it is empty for Python.
    """

    program: tuple[str, ...] | None = late_option(
        None,
        "[-- PROGRAM ARGS]",
        "MPI program and its arguments after --, for example -- ./a.out 100. Instead of --app.",
    )
    app: str | None = option(
        None,
        "--app NAME",
        "Application known by name (autotune apps lists them).",
        completion="apps",
    )
    input: str | None = option(
        None,
        "--input I",
        "Input of the application, by name. Default: its usual input.",
        completion="inputs",
    )
    ranks: int | None = option(
        None,
        "--ranks -n N",
        "Number of MPI processes. If the space varies ranks, threads or workers: number of cores. "
        "Default: that of --app.",
        ge=1,
    )
    cluster: str = late_option(
        "local",
        "--cluster C",
        "Cluster definition: nodes, launch options (autotune cluster list).",
        completion="clusters",
    )
    mpi: str | None = late_option(
        None,
        "--mpi P",
        "MPI library: family and version (openmpi-5.0, mpich) or installation directory. Default: "
        "that of the program, else the first on PATH.",
    )
    metric: str | None = late_option(
        None,
        "--metric RE",
        "Time that the program prints: regular expression with one group around the number, such "
        "as 'Time *= *(\\S+)', or json:KEY. auto: the figure that this program is known to print. "
        "Default: that of --app, else wall time.",
    )
    metric_rate: str | None = late_option(
        None,
        "--metric-rate RE",
        "Rate that the program prints (GB/s, ns/day), in the form of --metric; larger is better.",
    )
    metric_choice: MetricChoice | None = late_option(
        None,
        "--metric-choice",
        "Value to use if the program prints its figure several times in one run. Default: that of "
        "--app, else max of times and min of rates.",
    )
    verify: str | None = late_option(
        None,
        "--verify RE",
        "Check of the result: regular expression that the output must contain, or json:KEY. "
        "Default: that of --app, else exit code 0 only.",
    )
    verify_absent: str | None = late_option(
        None,
        "--verify-absent RE",
        "Regular expression that the output must not contain, such as FAILED.",
    )
    exit_codes: str | None = late_option(
        None,
        "--exit-codes LIST",
        "Exit codes of a successful run, separated by commas. Default: that of --app, else 0.",
    )
    stdin: FilePath | None = late_option(
        None, "--stdin FILE", "File for the standard input of rank 0. Default: empty input.", TEXT
    )
    before: tuple[str, ...] | None = late_option(
        None,
        "--before COMMAND",
        "Command executed before every run, without a shell, in the run's working directory, for "
        "example 'rm -f state.cpt'. Its time counts neither for the run nor for the budget.",
        COMMAND,
    )
    fresh_dir: FilePath | None = late_option(
        None,
        "--fresh-dir DIR",
        "Start every run in a fresh copy of DIR, made beside it and removed after the run. "
        "Default: every run starts in this directory.",
        TEXT,
    )
    timeout: float | str | None = late_option(
        None,
        "--timeout TIME",
        "Time limit of one run: 90, 90s, 10m or 2h. Default: that of --app, else 1h.",
        TEXT,
    )
    clean_env: bool = late_option(
        False,
        "--clean-env",
        "Remove inherited MPI settings (OMPI_MCA_* variables, parameter files) before each run. "
        "Default: they stay in force.",
    )
    commutative_only: bool = late_option(
        False,
        "--commutative-only",
        "All operations of the programs' reductions commute (as MPI_SUM and all others that MPI "
        "predefines). Allows algorithms that give wrong results otherwise. Default: only if a run "
        "shows it.",
    )
    command: str = ""

    @property
    def timeout_s(self) -> float | None:
        """Longest run in seconds; None if not given. Raises UsageError if it is no time."""
        if isinstance(self.timeout, str):
            return parse_duration(self.timeout, f"{self.name_of('timeout')} ")
        return self.timeout

    def name_of(self, field: str) -> str:
        """The name of a field as the caller writes it: an option, or a Python argument."""
        if self.command:
            return _OPTIONS.get(field, f"--{field.replace('_', '-')}")
        return f"{field}="


_OPTIONS = {"app": "--app NAME", "program": "-- PROGRAM ARGS"}
