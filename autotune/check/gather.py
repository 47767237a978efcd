"""Gathers the facts of one launch: reads the line and the machine, and watches one start.

Nothing is started with ``start=Start.NONE``. ``Start.PROBE`` puts the probe in the program's place,
and ``Start.PROGRAM`` runs the program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import Enum
from pathlib import Path

from autotune.check.launch_facts import FileInForce, LaunchFacts, LaunchOutcome, RankFacts
from autotune.check.launch_line import LaunchLine, parse_line
from autotune.check.node import other_jobs, read_node
from autotune.check.parameter_requests import LOADING
from autotune.check.pools import (
    PINNING,
    expected_threads,
    pinned_threads,
    pools_of_program,
)
from autotune.check.probe import probe_program, read_records, world_size
from autotune.check.start_watch import watch_start
from autotune.check.watch import LaunchWatch
from autotune.parameters.catalogue import Catalogue
from autotune.targets.launcher_line import as_user_types
from autotune.targets.mpi_need import MpiNeed, need_of
from autotune.targets.wrapped_launcher import is_assignment, split_wrappers
from runner.errors import RunnerError
from runner.files.paths import is_file
from runner.mpi.discover import adapter, find_library, identify
from runner.mpi.hosts import Hosts
from runner.mpi.library import Library
from runner.mpi.linkage import LinkedLibrary, identify_file, installation_of
from runner.mpi.openmpi.parameters import parameter_lines
from runner.scheduler import allocation
from runner.single_copy import kernel_copy_works
from runner.supervise import ExecRequest, ExecResult, Supervisor

PROBE_S = 30.0
"""Longest time of a launch of the probe in seconds."""
_RECORD_BYTES = 4096
_ROOT = {
    name: "1"
    for prefix in ("OMPI", "PRTE")
    for name in (f"{prefix}_ALLOW_RUN_AS_ROOT", f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM")
}
_ASK_S = 10


class Start(Enum):
    """What is started to gather facts."""

    NONE = "nothing"
    PROBE = "probe"
    PROGRAM = "program"


def gather(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    start: Start = Start.PROBE,
    timeout_s: float = 60.0,
) -> LaunchFacts:
    """The facts of a launch line, as arguments; ``environment``: that in which it is typed.

    Raises UsageError if the line has no launcher or no program.
    """
    around = dict(os.environ if environment is None else environment)
    line = parse_line(words)
    environment = {**around, **line.assignments}
    need = need_of(line.program)
    bare = _launcher_library(line, environment, need)
    line = parse_line(words, bare)
    with ThreadPoolExecutor(1) as pool:
        # It asks the library for its parameters, meanwhile the launch runs.
        completion = pool.submit(_completed, bare)
        node = read_node()
        own = _program_library(need)
        hosts = _hosts(line, bare, environment)
        facts = LaunchFacts(
            line,
            environment,
            library=bare,
            program_library=own,
            program_launcher=_program_launcher(need, bare),
            node=node,
            slots=None if hosts is None else hosts.with_own_cores(node.cores).total,
            hosts_here=not allocation(environment).several
            and (hosts is None or hosts.on_this_machine),
            slurm_version=_slurm_version(line, environment),
            mpi_types=_mpi_types(line, environment),
        )
        facts = _started(facts, start, timeout_s)
        lasting = other_jobs() if node.jobs and facts.outcome is not None else node.jobs
        pids = {job.pid for job in lasting}
        jobs = tuple(job for job in node.jobs if job.pid in pids)
        facts = replace(facts, node=replace(node, jobs=jobs))
        return _with_parameters(replace(facts, library=completion.result()), start)


def _with_parameters(facts: LaunchFacts, start: Start) -> LaunchFacts:
    """The facts with those of parameters, and of the transport if something was started."""
    library = facts.library
    if library is None:
        return facts
    environment = dict(facts.environment)
    try:
        catalogue = Catalogue.of(library)
        files = adapter(library).settings_files(environment)
    except RunnerError:
        return facts
    for option in facts.line.options:
        if option.bare in LOADING and option.values and library.family == "openmpi":
            files[option.values[0]] = parameter_lines(Path(option.values[0]))
    rows = tuple(
        FileInForce(
            path, {name: value for _, name, value in entries}, {name: n for n, name, _ in entries}
        )
        for path, entries in files.items()
    )
    node = replace(facts.node, kernel_copy=kernel_copy_works())
    facts = replace(facts, catalogue=catalogue, parameter_files=rows, node=node)
    return facts if start is Start.NONE else watch_start(facts)


def _completed(library: Library | None) -> Library | None:
    """The library with its parameters; as it is if it does not list them."""
    if library is None:
        return None
    try:
        return find_library(library.launcher)
    except RunnerError:
        return library


def _launcher_library(
    line: LaunchLine, environment: Mapping[str, str], need: MpiNeed | None
) -> Library | None:
    """The library of the launcher, without parameters; that of the program if Slurm starts it."""
    if line.is_srun:
        return None if need is None else installation_of(need.library)
    path = shutil.which(line.launcher, path=environment.get("PATH"))
    if path is None:
        return None
    beside = Path(path).with_name("mpirun")
    library = identify(Path(path))
    return library or (identify(beside) if is_file(beside) else None)


def _program_library(need: MpiNeed | None) -> LinkedLibrary | None:
    if need is None or not need.library.place:
        return None
    return identify_file(need.library.place)


def _program_launcher(need: MpiNeed | None, library: Library | None) -> str:
    """The launcher of the program's library as a user types it; "" if it is not found."""
    own = None if need is None else installation_of(need.library)
    if own is None or library is None or own.launcher == library.launcher:
        return ""
    return as_user_types([own.launcher], own.launcher)[0]


def _hosts(
    line: LaunchLine, library: Library | None, environment: Mapping[str, str]
) -> Hosts | None:
    """The hosts that the line, a file or the batch system names; None if none are named."""
    if library is None or line.is_srun:
        return None
    options = [word for option in line.options for word in option.words]
    try:
        return adapter(library).hosts(options, environment, Path.cwd())
    except RunnerError:
        return None


def _slurm_version(line: LaunchLine, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The version of srun; empty for other launchers, and if it is not installed."""
    if not line.is_srun:
        return ()
    match = re.search(r"(\d+)\.(\d+)\.?(\d*)", _answer([line.launcher, "--version"], environment))
    return tuple(int(part) for part in match.groups() if part) if match else ()


def _mpi_types(line: LaunchLine, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What ``srun --mpi=list`` names."""
    if not line.is_srun:
        return ()
    text = _answer([line.launcher, "--mpi=list"], environment)
    return tuple(word.strip(",") for word in text.split() if re.fullmatch(r"[a-z][\w/.,]*", word))


def _answer(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Both outputs of a command; "" if it cannot be run."""
    try:
        outcome = subprocess.run(
            words, env=dict(environment), capture_output=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (outcome.stdout + outcome.stderr).decode(errors="replace")


def _started(facts: LaunchFacts, start: Start, timeout_s: float) -> LaunchFacts:
    """The facts with those of a launch: of the program, or of the probe."""
    if start is Start.NONE or shutil.which(facts.line.launcher, path=_path(facts)) is None:
        return facts
    if start is Start.PROBE:
        return _with_probe(facts)
    facts, is_certain = _with_program(facts, timeout_s)
    pinning = any(name in rank.environment for rank in facts.ranks for name in PINNING)
    if facts.ranks and is_certain and not pinning:
        return facts
    # The probe says where the launcher puts the ranks.
    return replace(facts, ranks=_placed(facts.ranks, _with_probe(facts).ranks, pinning))


def _path(facts: LaunchFacts) -> str | None:
    return facts.environment.get("PATH")


def _request(facts: LaunchFacts, line: LaunchLine, timeout_s: float) -> ExecRequest:
    environment = {**facts.environment, **(_ROOT if os.geteuid() == 0 else {})}
    most = _RECORD_BYTES * max(16, facts.rank_count or 0)
    return ExecRequest(
        _executable(line, environment), environment, timeout_s=timeout_s, tail_bytes=most
    )


def _executable(line: LaunchLine, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The words of the line that can be executed without a shell.

    Leading assignments are in the environment already, and words of a shell (``time``, ``exec``)
    are left out with what is before the launcher if no program has their name.
    """
    words = list(line.before)
    while words and is_assignment(words[0]):
        words.pop(0)
    if words and shutil.which(words[0], path=environment.get("PATH")) is None:
        words = []
    return (*words, *line.words[len(line.before) :])


def _with_probe(facts: LaunchFacts) -> LaunchFacts:
    line = facts.line.with_program(*_wrappers(facts.line.program), *probe_program())
    with Supervisor() as supervisor:
        result = supervisor.run(_request(facts, line, PROBE_S))
    pools = pools_of_program(facts.line.program)
    ranks = tuple(_expected(rank, pools) for rank in read_records(result.stdout_tail))
    outcome = LaunchOutcome(True, _exit_code(result), result.wall_s, result.stderr)
    return replace(facts, ranks=_with_worlds(facts, ranks), outcome=outcome)


def _with_program(facts: LaunchFacts, timeout_s: float) -> tuple[LaunchFacts, bool]:
    """The facts with those of a run of the program; and whether its ranks' CPUs are certain."""
    with Supervisor() as supervisor:
        supervisor.start()
        assert supervisor.pid is not None
        with LaunchWatch(supervisor.pid) as watch:
            result = supervisor.run(_request(facts, facts.line, timeout_s))
    outcome = LaunchOutcome(False, _exit_code(result), result.wall_s, result.stderr)
    facts = replace(facts, ranks=_with_worlds(facts, watch.ranks()), outcome=outcome)
    return facts, watch.is_settled


def _wrappers(program: Sequence[str]) -> tuple[str, ...]:
    """The commands before a program, such as ``numactl -C 0``, which may change its CPUs."""
    _, rest = split_wrappers(program)
    words = tuple(program[: len(program) - len(rest)])
    return words if words and shutil.which(words[0]) else ()


def _exit_code(result: ExecResult) -> int | None:
    """The exit code; None at the time limit, and 128 + N for signal N, as shells say it."""
    if result.timed_out:
        return None
    return 128 + (result.signal or 0) if result.exit_code is None else result.exit_code


def _with_worlds(facts: LaunchFacts, ranks: tuple[RankFacts, ...]) -> tuple[RankFacts, ...]:
    """The ranks with the size of the world that the program's library finds."""
    own = facts.program_library
    if own is None:
        return ranks
    return tuple(
        replace(rank, world_size=world_size(rank.environment, own.family, own.version))
        for rank in ranks
    )


def _expected(rank: RankFacts, pools: frozenset[str] | None) -> RankFacts:
    """The rank with the threads that the program's libraries would start; the probe has one."""
    number = expected_threads(pools, rank.environment, len(rank.cpus))
    is_openmp = number > 1 if pools is None else bool(pools & {"gomp", "iomp"})
    threads = (rank.cpus,) * number
    if is_openmp:
        threads = pinned_threads(rank.environment, rank.cpus, number)
    return replace(rank, threads=threads, pools=tuple(sorted(pools or ())))


def _placed(
    ranks: tuple[RankFacts, ...], probed: tuple[RankFacts, ...], pinning: bool
) -> tuple[RankFacts, ...]:
    """The ranks of a program with the CPUs that the launcher gives them.

    A program that ended soon may have been seen while hwloc moved it; of one without ranks those of
    the probe are taken. With ``pinning`` its threads have CPUs of their own.
    """
    own = {rank.rank: rank for rank in ranks}
    if own.keys() != {rank.rank for rank in probed}:
        return probed or ranks
    return tuple(
        replace(
            own[rank.rank],
            cpus=rank.cpus,
            threads=own[rank.rank].threads if pinning else _moved(own[rank.rank], rank.cpus),
        )
        for rank in probed
    )


def _moved(rank: RankFacts, cpus: frozenset[int]) -> tuple[frozenset[int], ...]:
    """The threads of a rank, on other CPUs where they have those of the rank."""
    return tuple(cpus if thread == rank.cpus else thread for thread in rank.threads)
