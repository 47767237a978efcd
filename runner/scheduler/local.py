"""This machine as a scheduler: workers are processes, which take turns by the machine lock.

Clusters with disjoint CPUs (``cpus`` in their definition) are measured at the same time.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from runner.errors import RunnerError, RunnerUsageError
from runner.files import open_log
from runner.scheduler.base import Job, Scheduler, State


class LocalScheduler(Scheduler):
    """Workers are processes; they end with the process that started them, or by :meth:`cancel`."""

    name = "local"

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def require(self) -> None:
        """Raise nothing: this machine is always available."""

    def submit(self, job: Job) -> str:
        if job.nodes != 1:
            raise RunnerUsageError(
                "--scheduler local has only one node; leave --nodes-per-trial out",
                code="scheduler.one_node",
            )
        try:
            with open_log(job.log) as log:
                process = subprocess.Popen(
                    list(job.words),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=job.cwd,
                    env={**os.environ, **job.env},
                    start_new_session=True,
                )
        except OSError as problem:
            raise RunnerError(
                f"cannot start {job.words[0]}: {problem}", code="scheduler.start_fails"
            ) from None
        self._processes[str(process.pid)] = process
        return str(process.pid)

    def states(self, ids: Sequence[str]) -> dict[str, State]:
        return {
            number: "running"
            if number in self._processes and self._processes[number].poll() is None
            else "ended"
            for number in ids
        }

    def cancel(self, ids: Sequence[str]) -> None:
        for number in ids:
            process = self._processes.get(number)
            if process is None or process.poll() is not None:
                continue
            # The worker ends its ranks and keeps every finished run, as after Ctrl-C. SIGINT itself
            # is ignored by everything that a shell started in the background.
            os.kill(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
