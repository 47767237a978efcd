"""One execution, from launch specification to run record; only this file produces run figures."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from runner.cpus import CpuBinding, cpu_list, with_siblings
from runner.errors import RunnerError
from runner.executables import executables_of
from runner.figure.metric import metric_count, metric_of, metric_unit, patterns_of
from runner.files.paths import real_path
from runner.files.scratch import Scratch
from runner.fresh_copy import FreshCopies, write_inputs
from runner.guard import ran_outside
from runner.lock import renew_locks
from runner.mpi.base import REPORTED_FILE, Adapter, Probe
from runner.mpi.output import output_of
from runner.mpi.rank_layout import RankLayout, Topology
from runner.outcome import READS_INPUT, WAITS_FOR_INPUT, classify, signal_name
from runner.outcome.failure_message import WITHOUT_MESSAGE, reports_start_failure, telling_lines
from runner.outcome.value_source import all_words, source_words
from runner.placement import read_back_cpus, read_back_placement
from runner.scheduler import allocation
from runner.supervise import (
    DeferredInterrupts,
    ExecRequest,
    ExecResult,
    RunInterrupt,
    StartError,
    Supervisor,
)
from runner.threads import MARK as THREAD_MARK
from runner.threads import (
    asks,
    binds_threads,
    rank_bindings,
    read_back_threads,
    teams_of,
    with_report,
)
from runner.types import LaunchSpec, ReadBack, RunRecord, all_finite
from runner.variables import MARK as VARIABLE_MARK
from runner.variables import (
    asked_variables,
    read_back_variables,
    reports_of,
    with_variable_report,
)

TAIL = 4000
"""Characters of standard output and error that a record keeps."""
ASKED_WITHIN_S = 30.0
ASKED_FOR_S = 3.0
"""A program that failed within ASKED_WITHIN_S is started again to see if it reads its standard
input. The second start gets ASKED_FOR_S plus twice the program's time.
"""
BEFORE_LIMIT_S = 600.0
"""Time limit in seconds for the command before a run (:attr:`runner.types.LaunchSpec.before`)."""
QUERIES_AT_ONCE = 8
"""Launchers that are asked for their layouts at the same time; each mostly waits."""
LAUNCHES = 3
"""Maximum number of starts of one run if the launcher itself fails before any rank began."""


class Runner:
    """Runs launch specifications one after the other under one supervisor; a context manager.

    ``guard=False`` records foreign load but never rejects a run for it. ``own_processes`` are
    command names whose CPU time belongs to the cluster itself.

    ``cpus``: while the context lasts, the calling process and all programs run on these CPUs only,
    and only load on their cores is foreign. None: the whole machine. Raises
    :class:`runner.errors.RunnerError` if one of the CPUs may not be used.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        guard: bool = True,
        own_processes: Sequence[str] = (),
        cpus: frozenset[int] | None = None,
    ) -> None:
        self.adapter = adapter
        self.guard = guard
        self._own = tuple(own_processes)
        self._cpus = cpus
        self.judged_cpus = None if cpus is None else with_siblings(cpus)
        """CPUs on which load is foreign: ``cpus`` and the other hardware threads of their cores."""
        self._confinement = CpuBinding(cpus)
        self._supervisor = Supervisor()
        self._scratch: Scratch | None = None
        self._copies: dict[str, FreshCopies] = {}
        """The copies of each folder that runs get copies of."""
        self._has_worked = False
        """True if a program has run, or is known not to wait for input."""
        # Read once: the place stays the same even if the machine is renamed.
        self._nodes = allocation(os.environ).nodes or socket.gethostname()

    @property
    def place(self) -> str:
        """Nodes and CPUs of every run; figures of different places are never compared."""
        return self._nodes if self._cpus is None else f"{self._nodes} cpus {cpu_list(self._cpus)}"

    def __enter__(self) -> Runner:
        self.adapter.require()
        self._confinement.__enter__()
        self._scratch = Scratch()
        self._supervisor.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._supervisor.__exit__(*error)
        while self._copies:
            self._copies.popitem()[1].close()
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        self._confinement.__exit__(*error)

    def run(self, spec: LaunchSpec) -> RunRecord:
        """Execute ``spec`` once and describe the outcome; a failing program raises nothing.

        KeyboardInterrupt passes through after the whole process tree has ended. A run that ended by
        itself at that very moment is returned if the caller has entered DeferredInterrupts, which
        reports the Ctrl-C. If the launcher itself failed before any rank began, the run is started
        again, because the failure says nothing about the program or its setting. The first failing
        program is also started again, but only to see if it reads its standard input; the record is
        that of the first start.
        """
        renew_locks()  # Not part of the run's time.
        for _ in range(LAUNCHES):
            record = self._launch(spec)
            if not self._hiccup(record):
                break
        began = record.state == "failed" and not self._hiccup(record)
        if began and not self._has_worked and self._reads_input(spec, record):
            record.reason += READS_INPUT
        self._has_worked = self._has_worked or record.valid
        return record

    def rank_layouts(self, specs: Sequence[LaunchSpec]) -> list[RankLayout | None]:
        """Where the ranks of each launch would run; None where the launcher does not say so.

        No program is started. The launcher is asked several times at once; nothing else may be
        measured meanwhile.
        """
        topology = Topology.here()

        def layout(spec: LaunchSpec) -> RankLayout | None:
            return rank_layout(self.adapter, self._confine(spec), topology)

        with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
            return list(pool.map(layout, specs))

    def _reads_input(self, spec: LaunchSpec, record: RunRecord) -> bool:
        """True if a program failed at once because its standard input was empty.

        The program is started once more with an endless input; if it reads the input, it waits.
        """
        self._has_worked = True  # One such start is enough.
        has_hint = READS_INPUT in record.reason or record.reason == WAITS_FOR_INPUT
        by_signal = record.signal is not None or "(signal " in record.reason
        if spec.stdin is not None or has_hint or by_signal or record.wall_s > ASKED_WITHIN_S:
            return False
        place = self._new_folder()
        fifo = place / "input"
        os.mkfifo(fifo)
        # Also opened for writing, so that opening the fifo does not block a reader.
        writer_fd = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            limit_s = 2 * record.wall_s + ASKED_FOR_S
            limit_s = min(spec.timeout_s or limit_s, limit_s)
            retry = self._confine(replace(spec, stdin=str(fifo), timeout_s=limit_s))
            with self._prepare(retry) as ready:
                request = self._request(ready, place, self.adapter.report_pattern(ready))
                request = replace(request, fifo=str(fifo))
                return self._execute(request).waits_for_input
        finally:
            os.close(writer_fd)
            shutil.rmtree(place, ignore_errors=True)

    def _hiccup(self, record: RunRecord) -> bool:
        began = record.exit_code == 0 or record.world_size is not None
        return not began and self.adapter.had_hiccup(record.stderr_tail)

    def _launch(self, spec: LaunchSpec) -> RunRecord:
        # The command before a run may change the files of settings.
        with nullcontext() if spec.before else self.adapter.one_launch():
            return self._launch_once(spec)

    def _launch_once(self, spec: LaunchSpec) -> RunRecord:
        self.adapter.refuse_unknown_kinds(spec)
        place = self._new_folder()
        spec = self._confine(spec)
        report_pattern = self.adapter.report_pattern(spec)
        ended = False
        try:
            with self._prepare(spec) as ready:
                result = self._execute(self._request(ready, place, report_pattern))
            ended = not (result.timed_out or result.interrupted or result.signal is not None)
            if report_pattern:
                (place / REPORTED_FILE).write_text("\n".join(result.marked), encoding="utf-8")
            probe = self.adapter.probe(spec, place)
        finally:
            if not ended:
                self.adapter.end_launch(place)
            shutil.rmtree(place, ignore_errors=True)
        return self._record(spec, result, probe)

    def _new_folder(self) -> Path:
        """An empty folder for the files of one launch."""
        if self._scratch is None:
            raise RuntimeError("Runner is used outside its context")
        return Path(tempfile.mkdtemp(dir=self._scratch.path))

    def _confine(self, spec: LaunchSpec) -> LaunchSpec:
        return spec if self._cpus is None else self.adapter.confine(spec, self._cpus)

    @contextmanager
    def _prepare(self, spec: LaunchSpec) -> Iterator[LaunchSpec]:
        """The launch in its working directory, after its ``before`` command.

        This is not part of the run. Raises RunnerError if it fails.
        """
        with ExitStack() as stack:
            if spec.fresh_copy:
                folder = str(real_path(spec.cwd or Path.cwd()))
                if folder not in self._copies:
                    self._copies[folder] = FreshCopies(Path(folder))
                place = stack.enter_context(self._copies[folder].copy())
                spec = replace(spec, cwd=str(place))
            if spec.files:
                copy = Path(spec.cwd or ".") if spec.fresh_copy else None
                own = copy or stack.enter_context(self._own_folder())
                write_inputs(own, spec.files)
                spec = replace(spec, cwd=str(own))
            if spec.before:
                self._execute_before(spec)
            yield spec

    @contextmanager
    def _own_folder(self) -> Iterator[Path]:
        """An empty working directory for one run, which is removed afterwards."""
        place = self._new_folder()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _execute_before(self, spec: LaunchSpec) -> None:
        """Execute the command before a run; raises RunnerError if it fails."""
        words = f"the command before each run, {shlex.join(spec.before)},"
        request = ExecRequest(
            argv=spec.before, env=dict(os.environ), cwd=spec.cwd, timeout_s=BEFORE_LIMIT_S
        )
        try:
            result = self._supervisor.run(request)
        except StartError as problem:
            raise RunnerError(f"{words} cannot be executed: {problem}", code="before.failed") from (
                problem
            )
        if result.exit_code == 0 and not result.timed_out:
            return
        ending = f"exit code {result.exit_code}"
        if result.timed_out:
            ending = f"it did not end within {BEFORE_LIMIT_S:g} s"
        elif result.signal is not None:
            ending = f"signal {signal_name(result.signal)}"
        output = telling_lines(result.stderr, result.stdout_tail)
        lines = "".join(f"\n  | {line}" for line in output)
        raise RunnerError(
            f"{words} failed in {spec.cwd or Path.cwd()}: {ending}; it must end with exit code 0 "
            "before every run (a command with pipes or several steps: sh -c '...'), and the "
            f"program was not started{lines}",
            code="before.failed",
        )

    def _execute(self, request: ExecRequest) -> ExecResult:
        try:
            return self._supervisor.run(request)
        except RunInterrupt as stop:
            # The Ctrl-C came too late to stop this run: its figures count and must not be lost. The
            # Ctrl-C must not be lost either, so somebody must hold it.
            result = stop.result if DeferredInterrupts.is_entered() else None
            if isinstance(result, ExecResult) and not result.interrupted:
                return result
            raise

    def _request(self, spec: LaunchSpec, place: Path, report_pattern: str) -> ExecRequest:
        mark = self._mark(spec, report_pattern)
        if self._reports(spec):
            spec = with_variable_report(spec, self.adapter.rank_variables)
        spec = with_report(spec)
        return ExecRequest(
            argv=tuple(self.adapter.command(spec, place)),
            env=self.adapter.environment(spec, dict(os.environ)),
            cwd=spec.cwd,
            timeout_s=spec.timeout_s,
            patterns=patterns_of(spec),
            rank_env=self.adapter.rank_variables,
            ranks=spec.ranks,
            variables=tuple(asked_variables(spec)),
            ready_file=self._ready_file(spec, place),
            own_pids=self._own_pids(),
            own_names=tuple(sorted(self.adapter.daemons)),
            mark=mark,
            judged_cpus=None if self.judged_cpus is None else tuple(sorted(self.judged_cpus)),
        )

    def _reports(self, spec: LaunchSpec) -> bool:
        """True if the ranks report their variables, because /proc may not show all of them."""
        asks = spec.read_back and bool(asked_variables(spec))
        return asks and not self.adapter.on_this_machine(spec)

    def _mark(self, spec: LaunchSpec, report_pattern: str) -> str:
        """Regular expression of the lines of standard error that are not the program's own.

        ``report_pattern`` matches the lines that the adapter reads.
        """
        words = [THREAD_MARK] if asks(spec) else []
        words += [VARIABLE_MARK] if self._reports(spec) else []
        return "|".join(filter(None, [*words, report_pattern]))

    def _ready_file(self, spec: LaunchSpec, place: Path) -> str | None:
        path = self.adapter.ready_file(spec, place)
        return None if path is None else str(path)

    def _own_pids(self) -> tuple[int, ...]:
        """Ids of the cluster's own processes that can run only on these CPUs.

        Their CPU time is subtracted. Time that a process spent on other CPUs would hide foreign
        load on these CPUs.
        """
        pids = own_pids(self._own)
        return pids if self.judged_cpus is None else staying_on(pids, self.judged_cpus)

    def _cpus_read_back(self, result: ExecResult, bindings: list[str]) -> dict[str, ReadBack]:
        if self._cpus is None:
            return {}
        outside = ran_outside(result.before, result.after, result.cpu_s, result.window_s)
        return {"cpus": read_back_cpus(self._cpus, bindings, outside)}

    def _record(self, spec: LaunchSpec, result: ExecResult, probe: Probe) -> RunRecord:
        foreign = result.foreign
        teams = teams_of(result.marked)
        bindings = list(probe.bindings) or rank_bindings(result.ranks or (), teams)
        record = RunRecord(
            state="ok",
            wall_s=result.wall_s,
            metric_s=metric_of(spec, result),
            metric_rate=spec.metric_rate,
            metric_unit=metric_unit(spec, result),
            metric_count=metric_count(spec, result),
            exit_code=result.exit_code,
            signal=result.signal,
            started_at=result.started_at,
            cpu_s=result.cpu_s,
            foreign_cpu_s=foreign.cpu_s,
            init_s=result.init_s,
            irq_s=foreign.irq_s,
            foreign_limit_s=foreign.limit_s,
            load1=result.load1,
            world_size=probe.world_size,
            read_back=read_back_variables(
                asked_variables(spec), result.ranks or (), reports_of(result.marked), spec.ranks
            )
            | probe.read_back
            | read_back_threads(spec, teams)
            | read_back_placement(
                {n: v for n, v in spec.placement.items() if n not in probe.read_back},
                bindings,
                partly=binds_threads(spec),
            )
            | self._cpus_read_back(result, bindings),
            bindings=bindings,
            host=socket.gethostname(),
            place=self.place,
            mpi_name=self.adapter.library.family,
            mpi_version=self.adapter.library.version,
            command=self.adapter.command(replace(spec, read_back=False), Path()),
            output_bytes=result.output_bytes,
            stdout_tail=result.stdout_tail[-TAIL:],
            stderr_tail=result.stderr_tail[-TAIL:],
            inherited=probe.inherited_values,
            extra=all_finite(result.json_line or {}),
            executables=executables_of(
                result.files, result.started_at, Path(self.adapter.library.bin)
            ),
            printed=result.printed,
        )
        record.state, record.reason, record.verified = classify(
            spec, result, probe, record, self.adapter.refusals, self.guard
        )
        if record.state in ("failed", "launch_error", "timeout") and not probe.is_initialised:
            record.reason += self._source_words(spec, result, record.reason)
        return record

    def _source_words(self, spec: LaunchSpec, result: ExecResult, reason: str) -> str:
        """The source of a value that the library refused, if nobody typed it.

        A launcher that ends at once may lose the library's message: then all values are named.
        """
        if spec.clean_env:
            return ""
        inherited_values = self.adapter.inherited_settings(dict(os.environ) | spec.env)
        text = result.stderr + result.stdout_tail
        silent = reports_start_failure(text) or WITHOUT_MESSAGE in reason
        return source_words(inherited_values, text) or (
            all_words(inherited_values) if silent else ""
        )


def staying_on(pids: Sequence[int], cpus: frozenset[int]) -> tuple[int, ...]:
    """The processes in ``pids`` that can run only on ``cpus``."""
    bound_pids = []
    for pid in pids:
        try:
            if os.sched_getaffinity(pid) <= cpus:
                bound_pids.append(pid)
        except OSError:
            continue
    return tuple(bound_pids)


def own_pids(names: Sequence[str]) -> tuple[int, ...]:
    """Running processes with one of these command names (as in /proc/PID/comm)."""
    if not names:
        return ()
    pids = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if (place / "comm").read_text(encoding="utf-8", errors="replace").strip() in names:
                    pids.append(int(place.name))
            except OSError:
                continue
    return tuple(pids)


def rank_layout(adapter: Adapter, spec: LaunchSpec, topology: Topology) -> RankLayout | None:
    """Where the ranks of a launch would run; None if the launcher does not say so."""
    query = adapter.layout_query(spec)
    if query is None:
        return None
    environment = adapter.environment(spec, dict(os.environ)) | dict(query.variables)
    output = output_of(query.words, environment, whatever_code=query.fails, cwd=spec.cwd)
    return adapter.layout_in(output, spec, topology)
