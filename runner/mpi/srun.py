"""srun of Slurm as the launcher of a family's programs, in place of its own.

A class of a family gets srun's command line from :func:`started_by_srun`: library parameters go by
the environment, the placement by srun's options. The ranks are children of Slurm's daemons, so each
reports its CPUs and its CPU time at its end (:mod:`runner.rank_report`).

Names and options: srun(1) of Slurm 22.05, "OPTIONS" and "INPUT ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import ClassVar

from runner.errors import RunnerError, RunnerUsageError
from runner.mpi.base import REPORTED_FILE, Adapter, Probe
from runner.mpi.hosts import Hosts
from runner.mpi.library import Library
from runner.mpi.rank_layout import LayoutQuery, RankLayout, Topology
from runner.rank_report import MARK, StepRank, rank_reports, with_rank_report
from runner.scheduler.base import output_of
from runner.types import LIBRARY, LaunchSpec, ReadBack

NAME = "srun"
JOB = "SLURM_JOB_ID"
"""The variable that every process of a Slurm job has."""
MPI_TYPE = "mpi_type"
OPTIONS = {
    "cpu_bind": ("--cpu-bind", "SLURM_CPU_BIND"),
    "distribution": ("--distribution", "SLURM_DISTRIBUTION"),
    "hint": ("--hint", "SLURM_HINT"),
    "cpus_per_task": ("--cpus-per-task", "SRUN_CPUS_PER_TASK"),
    MPI_TYPE: ("--mpi", "SLURM_MPI_TYPE"),
}
"""Parts of the placement: option and variable of each."""
FLAGS = {"exact": ("--exact", "SLURM_EXACT"), "overlap": ("--overlap", "SLURM_OVERLAP")}
"""The same of options without a value; theirs is ``yes``."""
PLACEMENT = (*OPTIONS, *FLAGS)
YES = "yes"
_VARIABLES = {name: variable for name, (_, variable) in {**OPTIONS, **FLAGS}.items()}
_PLUGIN = "SLURM_MPI_TYPE"
_USUAL_PLUGINS = {"openmpi": "pmix", "mpich": "pmi2", "impi": "pmi2"}
"""The plug-in that connects the ranks of a family."""
_NO_PLUGIN = re.compile(r"^MpiDefault\s*=\s*(none|\(null\))?\s*$", re.MULTILINE)
_MCA = frozenset({"--mca", "-mca", "--gmca", "--omca"})
_PAIRS = frozenset({"-genv", "-env"})
_ASSIGNMENTS = frozenset({"-x", "--set-env"})
_OF_RUNTIME = frozenset({"--prtemca", "--gprtemca", "--pmixmca", "--gpmixmca"})
_EXPORT, _ALL = "--export", "ALL,"
_SOURCE = "step of Slurm"
_STEP_PATIENCE_S = 30.0
_POLL_S = 0.2


def is_srun(launcher: str) -> bool:
    """True if this launcher is srun."""
    return PurePath(launcher).name == NAME


def in_job(environment: Mapping[str, str]) -> bool:
    """True if a process with this environment is in a Slurm job, where srun starts a step."""
    return bool(environment.get(JOB))


def under_srun(library: Library) -> Library:
    """The library with srun as its launcher, whether it can start ranks here or not."""
    return dataclasses.replace(library, launcher=shutil.which(NAME) or NAME)


_JOB_AHEAD = ContextVar("job_ahead", default=False)


@contextmanager
def job_ahead(is_ahead: bool) -> Iterator[None]:
    """Within the block, launches are described as jobs that are submitted later will make them."""
    token = _JOB_AHEAD.set(is_ahead)
    try:
        yield
    finally:
        _JOB_AHEAD.reset(token)


def starts_here() -> bool:
    """True if srun starts the ranks: in this job or in one to come, where srun is installed."""
    return (in_job(os.environ) or _JOB_AHEAD.get()) and shutil.which(NAME) is not None


def placement_variables(placement: Mapping[str, str]) -> dict[str, str]:
    """srun's parts of a placement as variables that srun reads."""
    return {
        _VARIABLES[name]: "1" if name in FLAGS else value
        for name, value in placement.items()
        if name in OPTIONS or (name in FLAGS and value == YES)
    }


class SrunLaunch(Adapter):
    """The part of an adapter that is srun's; the family's class comes behind it."""

    placement_names = frozenset(PLACEMENT)
    tune_option = ""
    root_option = ""
    on_testbed = False
    rank_variables = ("SLURM_PROCID",)
    host_options = frozenset()
    counts_slots = False
    forwards_input = False
    daemons = frozenset({"slurmstepd", "slurmd", "slurmctld", "munged"})
    hiccups = ("Communication connection failure",)
    refusals: ClassVar[tuple[str, ...]] = (
        "srun: fatal:",
        "srun: unrecognized option",
        "srun: error: Invalid",
        "srun: error: Unable to create step",
        "srun: error: Unable to allocate resources",
        "srun: error: unrecognized --",
        "srun: error: Application launch failed",
        "execve():",
    )

    @property
    def launcher_title(self) -> str:
        return NAME

    def require(self) -> None:
        if not in_job(os.environ):
            raise RunnerError(
                "srun starts ranks in the nodes of a job, and this process is in none; start "
                "autotune in one, for example:  salloc -N 1 -n 2 autotune run -- srun -n 2 ./a.out",
                code="srun.no_job",
            )

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        variables = self._launch_variables(spec)
        # Words that only the read-back needs stand behind the launcher, in front of the program.
        program = self.program(spec)
        steps: list[str] = []
        if spec.read_back:
            if report := self.report_environment(spec, scratch):
                program = ("env", *_assignments(report), *program)
            program = with_rank_report(program)
            steps = ["--job-name", _step_name(scratch), *_step_limit(spec)]
            if not any(word.startswith(("-K", "--kill-on-bad-exit")) for word in _own_words(spec)):
                # Otherwise a rank that failed leaves the others waiting for it.
                steps.append("--kill-on-bad-exit=1")
        first = ["env", *_assignments(variables)] if variables else []
        return [
            *(*first, self.library.launcher, "-n", str(spec.ranks), *_own_words(spec)),
            *self.placement_words(self._with_plugin(spec), spec.oversubscribe),
            *steps,
            *program,
        ]

    def _with_plugin(self, spec: LaunchSpec) -> dict[str, str]:
        own = {MPI_TYPE: self.plugin} if self.plugin and _PLUGIN not in spec.env else {}
        return own | spec.placement

    def _launch_variables(self, spec: LaunchSpec) -> dict[str, str]:
        """Library parameters and variables of a launch, those of its options first."""
        parameters, variables = _of_options(spec.launch_options)
        of_options = self.variables({LIBRARY: parameters}, {})
        own = self.variables(spec.parameters, {})
        return of_options | variables | own | spec.variables

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        words = ["--overcommit"] if oversubscribe else []
        for name, (option, _) in OPTIONS.items():
            words += [option, placement[name]] if name in placement else []
        return words + [option for name, (option, _) in FLAGS.items() if placement.get(name) == YES]

    def environment(self, spec: LaunchSpec, base: dict[str, str]) -> dict[str, str]:
        env = super().environment(spec, base)  # type: ignore[safe-super]
        if spec.clean_env:
            env = {name: value for name, value in env.items() if name not in _VARIABLES.values()}
        # srun reads no parameter file, so no other HOME hides one from it.
        home = {"HOME": base["HOME"]} if "HOME" in base and "HOME" not in spec.env else {}
        # A job that was submitted with --export=NONE must not hide the parameters from the ranks.
        return env | home | {"SLURM_EXPORT_ENV": "ALL"}

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        return super().variables(parameters, {}) | placement_variables(placement)  # type: ignore[safe-super]

    @cached_property
    def plugin(self) -> str:
        """The plug-in that this family needs, where Slurm connects no ranks by default; else ""."""
        if _PLUGIN in os.environ or not in_job(os.environ):
            return ""
        usual = _USUAL_PLUGINS.get(self.library.family, "")
        try:
            return usual if _NO_PLUGIN.search(output_of(["scontrol", "show", "config"])) else ""
        except RunnerError:
            return ""

    @classmethod
    def placement_in(cls, variables: Mapping[str, object]) -> dict[str, tuple[str, list[str]]]:
        return {
            name: (YES if name in FLAGS else str(variables[variable]), [variable])
            for name, variable in _VARIABLES.items()
            if variable in variables
        }

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        own = {name: environment[name] for name in _VARIABLES.values() if name in environment}
        return super().inherited_settings(environment) | own  # type: ignore[safe-super]

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return [word for n, v in variables.items() for word in (_EXPORT, f"{_ALL}{n}={v}")]

    def confine(self, spec: LaunchSpec, cpus: frozenset[int]) -> LaunchSpec:
        raise RunnerUsageError(
            "the cluster definition has cpus, and ranks of srun do not inherit the launcher's "
            "CPUs; leave cpus out, and let the job ask for the cores that it should have",
            code="srun.cpus",
        )

    def share_cores(
        self,
        placement: Mapping[str, str],
        workers: int,
        launch_options: Sequence[str] = (),
        oversubscribe: bool = False,
    ) -> dict[str, str]:
        words = dict(placement)
        if workers > 1 and not oversubscribe:
            words.setdefault("cpus_per_task", str(workers))
        return words

    def layout_query(self, spec: LaunchSpec) -> LayoutQuery | None:
        if not in_job(os.environ):
            return None
        bare = dataclasses.replace(spec, program=("true",), stdin=None, read_back=False)
        words = self.command(bare, Path())
        report = with_rank_report(("true",), stream=1)
        # Several queries run at once, on the CPUs of one job.
        at = words.index(self.library.launcher) + 1
        return LayoutQuery([*words[:at], "--overlap", *words[at:-1], *report])

    def layout_in(self, output: str, spec: LaunchSpec, topology: Topology) -> RankLayout | None:
        reports = rank_reports(output.splitlines())
        if set(reports) != set(range(spec.ranks)):
            return None
        # Two plug-ins or numbers of CPUs are two settings, wherever the ranks run.
        kind = [spec.placement[n] for n in (MPI_TYPE,) if n in spec.placement]
        return tuple(
            " ".join([f"{reports[r].node}: {reports[r].cpus}", *kind]) for r in range(spec.ranks)
        )

    def report_pattern(self, spec: LaunchSpec) -> str:
        of_family = super().report_pattern(spec)
        return "|".join(filter(None, [f"^{MARK} " if spec.read_back else "", of_family]))

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        probe = super().probe(spec, scratch)  # type: ignore[safe-super]
        with suppress(OSError):
            text = (scratch / REPORTED_FILE).read_text(encoding="utf-8", errors="replace")
            reports = rank_reports(text.splitlines())
            bindings = [reports[rank].cpus for rank in sorted(reports)]
            complete = len(bindings) == spec.ranks
            read_back = probe.read_back | _step_states(spec.placement, list(reports.values()))
            return dataclasses.replace(
                probe, read_back=read_back, bindings=tuple(bindings) if complete else ()
            )
        return probe

    def on_this_machine(self, spec: LaunchSpec) -> bool:
        return False

    def names_hosts(self, spec: LaunchSpec) -> bool:
        return False

    def hosts(
        self, options: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Hosts | None:
        return None

    def end_launch(self, scratch: Path) -> None:
        name = _step_name(scratch)
        end = time.monotonic() + _STEP_PATIENCE_S
        with suppress(RunnerError):
            while (steps := _steps(name)) and time.monotonic() < end:
                with suppress(RunnerError):  # It may have ended meanwhile.
                    output_of(["scancel", *steps])
                time.sleep(_POLL_S)


@cache
def started_by_srun(kind: type[Adapter]) -> type[Adapter]:
    """The class of a family whose programs srun starts."""
    kinds = tuple(name for name in kind.kinds if name != "prte")
    return type(f"Srun{kind.__name__}", (SrunLaunch, kind), {"kinds": kinds})


def _assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def _step_name(scratch: Path) -> str:
    """The name of a launch's step, by which it is found when srun is gone."""
    return f"autotune-{scratch.name}"


def _step_limit(spec: LaunchSpec) -> list[str]:
    """Slurm's own limit of the step, in minutes: for a step that outlives whoever started it."""
    return [] if spec.timeout_s is None else ["--time", str(math.ceil(spec.timeout_s / 60) + 1)]


def _steps(name: str) -> list[str]:
    """Ids of the running steps of this job that have this name."""
    words = ["squeue", "--steps", "--noheader", "--jobs", os.environ.get(JOB, "")]
    lines = output_of([*words, "--format", "%i %j"]).splitlines()
    return [line.split()[0] for line in lines if line.split()[1:] == [name]]


def _of_options(options: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Library parameters and variables that launch options of any launcher set."""
    parameters: dict[str, str] = {}
    variables: dict[str, str] = {}
    for at, word in enumerate(options):
        behind = options[at + 1 : at + 3]
        if word in _MCA and len(behind) == 2:
            parameters[behind[0]] = behind[1]
        elif word in _PAIRS and len(behind) == 2:
            variables[behind[0]] = behind[1]
        elif (word in _ASSIGNMENTS or word == _EXPORT) and behind:
            name, _, value = behind[0].removeprefix(_ALL).partition("=")
            variables[name] = value
    return parameters, variables


def _own_words(spec: LaunchSpec) -> list[str]:
    """The launch options that are srun's own: neither parameters nor variables."""
    words, own_words = list(spec.launch_options), list[str]()
    while words:
        word = words.pop(0)
        if word in _MCA | _PAIRS | _OF_RUNTIME:
            del words[:2]
        elif word in _ASSIGNMENTS or word == _EXPORT:
            del words[:1]
        else:
            own_words.append(word)
    return own_words


def _step_states(placement: Mapping[str, str], reports: Sequence[StepRank]) -> dict[str, ReadBack]:
    """The parts of the placement that Slurm gives each rank in a variable."""
    texts = {
        "distribution": {one.distribution for one in reports},
        "cpus_per_task": {one.cpus_per_task for one in reports},
        MPI_TYPE: {one.plugin for one in reports},
    }
    states = {}
    for name in texts.keys() & placement.keys():
        seen = sorted(filter(None, texts[name]))
        if not seen:
            continue
        state = "in force" if seen == [placement[name]] else "altered"
        states[name] = ReadBack(state, placement[name], " | ".join(seen), _SOURCE)  # type: ignore[arg-type]
    return states
