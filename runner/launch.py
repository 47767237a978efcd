"""One execution from its description to its record: the only place where a run becomes a number."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from runner.mpi.base import Adapter, Probe
from runner.outcome import classify, metric_of, patterns_of
from runner.placement import read_back_placement
from runner.supervise import ExecRequest, ExecResult, RunInterrupted, Supervisor
from runner.types import LaunchSpec, RunRecord

TAIL = 4000
"""Characters of standard output and error that a record keeps."""


class Runner:
    """Runs launch specifications one after the other under one supervisor.

    ``guard=False`` records foreign load but never rejects a run for it.  ``own_processes`` are
    command names whose CPU time belongs to the cluster itself.  Use as a context manager.
    """

    def __init__(
        self, adapter: Adapter, *, guard: bool = True, own_processes: Sequence[str] = ()
    ) -> None:
        self.adapter = adapter
        self.guard = guard
        self._own = tuple(own_processes)
        self._supervisor = Supervisor()
        self._scratch: Path | None = None

    def __enter__(self) -> Runner:
        self._scratch = Path(tempfile.mkdtemp(prefix="autotune-"))
        self._supervisor.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._supervisor.__exit__(kind, error, trace)
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def run(self, spec: LaunchSpec) -> RunRecord:
        """Execute ``spec`` once and describe what happened; raises nothing for a failing program.

        KeyboardInterrupt passes through after the whole process tree is gone.  A run that ended by
        itself at that very moment is returned; DeferredInterrupts tells its caller of the Ctrl-C.
        """
        if self._scratch is None:
            raise RuntimeError("Runner is used outside its context")
        place = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            result = self._execute(self._request(spec, place))
            probe = self.adapter.probe(spec, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return self._record(spec, result, probe)

    def _execute(self, request: ExecRequest) -> ExecResult:
        try:
            return self._supervisor.run(request)
        except RunInterrupted as stop:
            # Ctrl-C came too late to stop this run: its figures count, and must not be lost.
            if isinstance(stop.result, ExecResult) and not stop.result.interrupted:
                return stop.result
            raise

    def _request(self, spec: LaunchSpec, place: Path) -> ExecRequest:
        return ExecRequest(
            argv=tuple(self.adapter.command(spec, place)),
            env=self.adapter.environment(spec, dict(os.environ)),
            cwd=spec.cwd,
            stdin=spec.stdin,
            timeout_s=spec.timeout_s,
            patterns=patterns_of(spec),
            rank_env=self.adapter.rank_variables,
            ranks=spec.ranks,
            own_pids=own_pids(self._own),
        )

    def _record(self, spec: LaunchSpec, result: ExecResult, probe: Probe) -> RunRecord:
        foreign = result.foreign
        bindings = [rank.cpus for rank in result.ranks or ()]
        record = RunRecord(
            state="ok",
            wall_s=result.wall_s,
            metric_s=metric_of(spec, result),
            exit_code=result.exit_code,
            signal=result.signal,
            started_at=result.started_at,
            cpu_s=result.cpu_s,
            foreign_cpu_s=foreign.cpu_s,
            irq_s=foreign.irq_s,
            foreign_limit_s=foreign.limit_s,
            load1=result.load1,
            world_size=probe.world_size,
            read_back=probe.read_back | read_back_placement(spec.placement, bindings),
            bindings=bindings,
            host=socket.gethostname(),
            mpi_name=self.adapter.library.family,
            mpi_version=self.adapter.library.version,
            command=self.adapter.command(replace(spec, read_back=False), Path()),
            output_bytes=result.output_bytes,
            stdout_tail=result.stdout_tail[-TAIL:],
            stderr_tail=result.stderr_tail[-TAIL:],
            inherited=probe.inherited,
            extra=result.json_line or {},
        )
        record.state, record.reason, record.verified = classify(
            spec, result, probe, record, self.adapter.refusals, self.guard
        )
        return record


def own_pids(names: Sequence[str]) -> tuple[int, ...]:
    """Running processes with one of these command names (as in /proc/PID/comm)."""
    if not names:
        return ()
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if (place / "comm").read_text().strip() in names:
                    found.append(int(place.name))
            except OSError:
                continue
    return tuple(found)
