"""One execution inside the server: what is known about it and what is due next."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass

from runner import guard
from runner.supervise import _launch, _tree
from runner.supervise._capture import Capture
from runner.supervise._input import InputWatch
from runner.supervise._ranks import RankWatch
from runner.supervise._ready import ReadyFile
from runner.supervise.model import ExecRequest, ExecResult, Leftover

_READ_BYTES = 1024 * 1024
_TABLE_COST_S = 0.002
"""The table of processes is taken before each run only where it costs no more than this."""


@dataclass(frozen=True)
class Snapshot:
    """The CPUs and this process at one moment; ``declared_s``: the cluster's own processes."""

    at: float
    cpu: guard.CpuTimes
    server_s: float
    declared_s: float

    @classmethod
    def take(cls, request: ExecRequest) -> Snapshot:
        declared = sum(t.cpu_s for t in guard.process_times(request.own_pids).values())
        counters = guard.cpu_times(request.judged_cpus)
        return cls(time.monotonic(), counters, time.process_time(), declared)


class ProcessTable:
    """CPU time of every process before a run, so that a culprit can be named after it.

    On a machine with thousands of processes the table is refreshed rarely, so that it costs one
    per cent of the time at most; what it then says covers a longer time than the run.
    """

    def __init__(self) -> None:
        self.before: dict[int, guard.ProcessTime] = {}
        self._next_at = 0.0

    def refresh(self) -> None:
        start = time.monotonic()
        if start < self._next_at:
            return
        self.before = guard.process_times()
        cost = time.monotonic() - start
        self._next_at = start + (100 * cost if cost > _TABLE_COST_S else 0.0)


class Run:
    """Started by the constructor, which raises :class:`_launch.LaunchFailure`."""

    def __init__(self, request: ExecRequest, table: ProcessTable) -> None:
        self.request = request
        self._table = table
        self._capture = Capture(request.patterns, request.head_bytes, request.tail_bytes)
        ready = request.ready_file
        self._watch = RankWatch(request.rank_env, request.env, request.ranks, ready)
        self._input = InputWatch(request.rank_env, request.env, request.fifo)
        self._waits_for_input = False
        table.refresh()
        self._load1 = os.getloadavg()[0]
        self._started_at = time.time()
        self._before = Snapshot.take(request)
        # Before the launch: the library may write the file at any time after it.
        self._ready = ReadyFile(ready) if ready and self._watch.next_s is not None else None
        try:
            self._launched = _launch.launch(request)
        except _launch.LaunchFailure:
            self._close_ready()
            raise
        self._start = self._launched.started
        self.streams = {self._launched.stdout, self._launched.stderr}
        if self._ready is not None and self._ready.fd is not None:
            self.streams.add(self._ready.fd)
        self._status: int | None = None
        self._wall_s = 0.0
        self._cpu_s = 0.0
        self._rss_kib = 0
        self._linger_until: float | None = None
        self._stop: _tree.TreeStop | None = None
        self._timed_out = False
        self._interrupted = False
        self._leftovers: tuple[Leftover, ...] = ()
        self._all_gone = False

    @property
    def ended(self) -> bool:
        """The launcher has been reaped and nothing is left below this process."""
        return self._all_gone and self._status is not None

    @property
    def hopeless(self) -> bool:
        return self._stop is not None and self._stop.hopeless

    def reap(self) -> None:
        """Collect every child that has ended, orphans too, with its CPU time."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._all_gone = True
                return
            if pid == 0:
                return
            self._account(usage)
            if pid == self._launched.pid:
                now = time.monotonic()
                self._status = status
                self._wall_s = now - self._start
                self._linger_until = now + self.request.linger_s

    def _account(self, usage: resource.struct_rusage) -> None:
        # Of a child and of all that it waited for itself: each process is counted once.
        self._cpu_s += usage.ru_utime + usage.ru_stime
        self._rss_kib = max(self._rss_kib, usage.ru_maxrss)

    def read(self, fd: int) -> bool:
        """Take what a stream offers; False at its end."""
        if self._ready is not None and fd == self._ready.fd:
            return self._on_ready(self._ready)
        try:
            chunk = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        if fd == self._launched.stdout:
            self._capture.add_stdout(chunk)
        else:
            self._capture.add_stderr(chunk)
        return True

    def _on_ready(self, ready: ReadyFile) -> bool:
        """Look at the ranks once the library has written its file; False: no more is awaited."""
        if not ready.written():
            return True
        if self._stop is None and self._watch.next_s is not None:
            self._watch.look(os.getpid())
        return False

    def close(self, fd: int) -> None:
        self.streams.discard(fd)
        os.close(fd)

    def _close_ready(self) -> None:
        if self._ready is not None and self._ready.fd is not None:
            os.close(self._ready.fd)

    def interrupt(self, grace_s: float, hurry: bool) -> None:
        """End the run because the caller wants so; ``hurry``: without grace."""
        now = time.monotonic()
        if self._status is None and not self._timed_out:
            self._interrupted = True
        self._begin_stop(now, grace_s)
        if hurry and self._stop is not None:
            self._stop.hurry(now)

    def _begin_stop(self, now: float, grace_s: float) -> None:
        if self._stop is None:
            self._stop = _tree.TreeStop(now, grace_s)

    def next_at(self) -> float | None:
        """Monotonic time at which :meth:`on_time` has something to do."""
        times = [self._stop.next_at if self._stop is not None else None]
        if self._stop is None:
            times.append(self._linger_until)
            if self._status is None:
                times.append(_after(self._start, self.request.timeout_s))
                times.append(_after(self._start, self._watch.next_s))
                times.append(_after(self._start, self._input.next_s))
        return min((t for t in times if t is not None), default=None)

    def on_time(self, now: float) -> None:
        if self._stop is not None:
            if now >= self._stop.next_at:
                self._stop.on_time(now)
        elif self._linger_until is not None:
            if now >= self._linger_until:
                self._leftovers = _tree.living()
                self._begin_stop(now, self.request.grace_s)
        elif _due(now, self._start, self.request.timeout_s):
            self._timed_out = True
            self._begin_stop(now, self.request.grace_s)
        elif _due(now, self._start, self._watch.next_s):
            self._watch.look(os.getpid())
        elif _due(now, self._start, self._input.next_s):
            self._waits_for_input = self._input.look(os.getpid(), self._launched.pid)
            if self._waits_for_input:
                self._begin_stop(now, self.request.grace_s)

    def result(self, others: tuple[int, ...]) -> ExecResult:
        """After ``ended``.  ``others``: processes that are never culprits."""
        after = Snapshot.take(self.request)
        self._drain()
        server_s = after.server_s - self._before.server_s
        declared_s = after.declared_s - self._before.declared_s
        window_s = after.at - self._before.at
        own_s = self._cpu_s + server_s + declared_s
        foreign = guard.judge(self._before.cpu, after.cpu, own_s, window_s)
        culprits: tuple[guard.Culprit, ...] = ()
        if foreign.exceeded:
            own = (os.getpid(), *others, *self.request.own_pids)
            now = guard.process_times()
            culprits = guard.culprits(self._table.before, now, own, cpus=self.request.judged_cpus)
        status = self._status or 0
        return ExecResult(
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            timed_out=self._timed_out,
            interrupted=self._interrupted,
            wall_s=self._wall_s,
            started_at=self._started_at,
            cpu_s=self._cpu_s,
            server_cpu_s=server_s,
            tuner_cpu_s=0.0,
            declared_cpu_s=declared_s,
            max_rss_bytes=self._rss_kib * 1024,
            load1=self._load1,
            window_s=window_s,
            before=self._before.cpu,
            after=after.cpu,
            foreign=foreign,
            culprits=culprits,
            output_bytes=self._capture.total_bytes,
            matches=self._capture.matches,
            json_line=self._capture.json_line,
            ranks=self._watch.result(),
            leftovers=self._leftovers,
            waits_for_input=self._waits_for_input,
            **self._capture.texts,
        )

    def _drain(self) -> None:
        """Read what the pipes still hold.

        Nothing of the run is left that could write; a stranger that was handed the pipe could
        write for ever, so no more is taken than a pipe holds.
        """
        for fd in tuple(self.streams):
            if self._ready is None or fd != self._ready.fd:
                self.read(fd)
            self.close(fd)
        self._capture.close()


def _after(start: float, seconds: float | None) -> float | None:
    return None if seconds is None else start + seconds


def _due(now: float, start: float, seconds: float | None) -> bool:
    return seconds is not None and now >= start + seconds
