"""The supervision process: one light, single-threaded event loop below the tuner.

The process is a child subreaper, so every process of a run stays below it even if its parents end.
When the tuner is gone, the supervision process ends all of them and then itself.

:class:`Server` is the event loop, :class:`Run` one execution with its state and next steps, and
:class:`PreparedLaunch` the start of the launcher.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import time
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

from runner.rank_report import cpu_s_here
from runner.supervise import messages, process_tree
from runner.supervise.child import become_program, read_all
from runner.supervise.counters import Account, ProcessTable
from runner.supervise.inner_launcher import InnerLauncherWatch
from runner.supervise.messages import (
    ExecRequest,
    ExecResult,
    Leftover,
    request_from_json,
    result_to_json,
)
from runner.supervise.output import Capture
from runner.supervise.process_tree import (
    become_subreaper,
    continue_without_parent,
    end_everything,
    living,
)
from runner.supervise.watches import InputWatch, LauncherWatch, RankWatch, ReadyFile

_ORPHAN_GRACE_S = 2.0
"""Grace time in seconds for the tree when the tuner is gone: no caller waits any more."""


class Server:
    """Serves ``sock`` until the tuner closes it or dies."""

    def __init__(self, sock: socket.socket, tuner: int) -> None:
        self._sock = sock
        self._tuner = tuner
        self._table = ProcessTable()
        self._next: PreparedLaunch | None = None
        self._run: Run | None = None
        self._leaving = False
        self._told_to_leave = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ, "caller")
        self._wake = self._wakeup_pipe()
        self._selector.register(self._wake, selectors.EVENT_READ, "signal")
        self._watch_tuner()

    def _wakeup_pipe(self) -> int:
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        # The tuner may have started this process with signals blocked.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Only a signal with a handler is written to the pipe; the loop handles it.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        # The tuner decides about Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return read

    def _watch_tuner(self) -> None:
        """Watch for the tuner's end. End of file is not enough: a forked child may hold the
        socket."""
        # Kernel before 5.3, or a sandbox: only end of file shows it.
        with contextlib.suppress(OSError):
            self._selector.register(os.pidfd_open(self._tuner), selectors.EVENT_READ, "tuner")
        if os.getppid() != self._tuner:
            self._leave()

    def serve(self) -> None:
        """The event loop."""
        while not (self._leaving and self._run is None):
            for key, _ in self._selector.select(self._timeout()):
                if key.data == "signal":
                    self._drain_wakeups()
                elif key.data == "caller":
                    self._on_caller()
                elif key.data == "tuner":
                    self._selector.unregister(key.fd)
                    self._leave()
                else:
                    self._on_stream(key.fd)
            if self._told_to_leave and not self._leaving:
                self._leave()
            if self._run is not None:
                self._advance(self._run)
        if self._next is not None:
            self._next.end()

    def _timeout(self) -> float | None:
        due = self._run.next_at() if self._run is not None else None
        return None if due is None else max(0.0, due - time.monotonic())

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        # The signal may arrive between any two lines of the loop: only record it.
        self._told_to_leave = True

    def _drain_wakeups(self) -> None:
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            return

    def _on_caller(self) -> None:
        message = messages.receive(self._sock)
        if message is None:
            self._selector.unregister(self._sock)
            self._leave()
        elif message["op"] == "run":
            self._start(message["request"])
        elif message["op"] == "stop" and self._run is not None:
            self._run.interrupt(self._run.request.grace_s, hurry=message["hurry"])

    def _start(self, data: dict[str, Any]) -> None:
        preparation, self._next = self._next, None
        try:
            self._run = Run(request_from_json(data), self._table, preparation)
        except LaunchFailure as failure:
            self._reply({"failed": failure.step, "errno": failure.errno})
            return
        for fd in self._run.streams:
            self._selector.register(fd, selectors.EVENT_READ, "stream")

    def _on_stream(self, fd: int) -> None:
        if self._run is not None and fd in self._run.streams and not self._run.read(fd):
            self._selector.unregister(fd)
            self._run.close(fd)

    def _advance(self, run: Run) -> None:
        run.reap()
        if run.has_ended:
            self._finish(run)
            return
        run.on_time(time.monotonic())
        if run.hopeless:
            names = ", ".join(f"{p.name} (pid {p.pid})" for p in living())
            self._reply({"unkillable": names})
            os._exit(1)

    def _finish(self, run: Run) -> None:
        for fd in run.streams:
            self._selector.unregister(fd)
        self._run = None
        result = result_to_json(run.result(others=(self._tuner,)))
        self._reply({"result": result, "leaving": self._leaving})
        if not self._leaving:
            # The tuner is busy now, so this costs no time between two runs.
            self._next = PreparedLaunch(fds_to_close=(self._sock.fileno(),))
            self._table.refresh()

    def _reply(self, message: dict[str, Any]) -> None:
        try:
            messages.send(self._sock, message)
        except OSError:
            # The tuner has died; its end of file or pidfd ends the loop.
            return

    def _leave(self) -> None:
        self._leaving = True
        if self._run is not None:
            grace_s = min(self._run.request.grace_s, _ORPHAN_GRACE_S)
            self._run.interrupt(grace_s, hurry=False)


def main(fd: int, tuner: int) -> None:
    """Serve the inherited socket ``fd`` for the tuner, whose process id is ``tuner``."""
    sock = socket.socket(fileno=fd)
    sock.set_inheritable(False)
    try:
        become_subreaper()
        continue_without_parent()
        server = Server(sock, tuner)
        messages.send(sock, {"ready": os.getpid()})
        server.serve()
    except BaseException:
        # In any case the tuner must learn of it, and the tree must not stay.
        text = traceback.format_exc()
        end_everything()
        messages.send(sock, {"crashed": text})
        raise


_READ_BYTES = 1024 * 1024


class Run:
    """One execution; the constructor starts the program and raises :class:`LaunchFailure`."""

    def __init__(
        self, request: ExecRequest, table: ProcessTable, preparation: PreparedLaunch | None = None
    ) -> None:
        self.request = request
        self._capture = Capture(
            request.patterns, request.head_bytes, request.tail_bytes, request.mark
        )
        ready = request.ready_file
        self._watch = RankWatch(
            request.rank_env, request.env, request.ranks, ready, request.variables
        )
        self._input = InputWatch(request.rank_env, request.env, request.fifo)
        self._waits_for_input = False
        self._launcher = LauncherWatch(request.rank_env, request.env)
        self._launcher_hangs = False
        self._inner = InnerLauncherWatch(request.rank_env, request.env)
        self._inner_launcher: tuple[str, ...] = ()
        self._account = Account(request, table)
        # Set before the launch: the library may write the file at any time after it.
        self._ready = ReadyFile(ready) if ready and self._watch.next_s is not None else None
        try:
            self._process = launch(request, preparation)
        except LaunchFailure:
            self._close_ready()
            raise
        self._start = self._process.start_time
        self.streams = {self._process.stdout, self._process.stderr}
        if self._ready is not None and self._ready.fd is not None:
            self.streams.add(self._ready.fd)
        self._status: int | None = None
        self._wall_s = 0.0
        self._init_s: float | None = None
        self._linger_until: float | None = None
        self._stop: process_tree.TreeStop | None = None
        self._timed_out = False
        self._has_interrupt = False
        self._leftovers: tuple[Leftover, ...] = ()
        self._is_childless = False

    @property
    def has_ended(self) -> bool:
        """True if the launcher has been reaped and no process is left below this one."""
        return self._is_childless and self._status is not None

    @property
    def hopeless(self) -> bool:
        return self._stop is not None and self._stop.hopeless

    def reap(self) -> None:
        """Reap every child that has ended, orphans too, and count its CPU time."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._is_childless = True
                return
            if pid == 0:
                return
            self._account.add(usage)
            if pid == self._process.pid:
                now = time.monotonic()
                self._status = status
                self._account.cpu_s -= self._process.waiting_cpu_s
                self._wall_s = now - self._start
                self._linger_until = now + self.request.linger_s

    def read(self, fd: int) -> bool:
        """Read the data that a stream offers; False at its end."""
        if self._ready is not None and fd == self._ready.fd:
            return self._on_ready(self._ready)
        try:
            chunk = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        if fd == self._process.stdout:
            self._capture.add_stdout(chunk)
        else:
            self._capture.add_stderr(chunk)
        return True

    def _on_ready(self, ready: ReadyFile) -> bool:
        """Look at the ranks once the library has written its file; False if none is awaited."""
        if not ready.is_written():
            return True
        self._init_s = time.monotonic() - self._start
        if self._stop is None and self._watch.next_s is not None:
            self._watch.look(os.getpid())
            self._look_for_launchers(time.monotonic())
        return False

    def _look_for_launchers(self, now: float) -> None:
        """End the run if a rank has started a launcher: it would measure another job."""
        self._inner_launcher = self._inner.look(os.getpid(), self._process.pid)
        if self._inner_launcher:
            self._begin_stop(now, self.request.grace_s)

    def close(self, fd: int) -> None:
        self.streams.discard(fd)
        os.close(fd)

    def _close_ready(self) -> None:
        if self._ready is not None and self._ready.fd is not None:
            os.close(self._ready.fd)

    def interrupt(self, grace_s: float, hurry: bool) -> None:
        """End the run because the caller asks for it; ``hurry``: without grace time."""
        now = time.monotonic()
        if self._status is None and not self._timed_out:
            self._has_interrupt = True
        self._begin_stop(now, grace_s)
        if hurry and self._stop is not None:
            self._stop.hurry(now)

    def _begin_stop(self, now: float, grace_s: float) -> None:
        if self._stop is None:
            self._stop = process_tree.TreeStop(now, grace_s)

    def next_at(self) -> float | None:
        """Monotonic time in seconds at which :meth:`on_time` has work to do."""
        times = [self._stop.next_at if self._stop is not None else None]
        if self._stop is None:
            times.append(self._linger_until)
            if self._status is None:
                times.append(_after(self._start, self.request.timeout_s))
                times.append(_after(self._start, self._watch.next_s))
                times.append(_after(self._start, self._input.next_s))
                times.append(_after(self._start, self._inner.next_s))
                times.append(_after(self._start, self._launcher.next_s))
        return min((t for t in times if t is not None), default=None)

    def on_time(self, now: float) -> None:
        if self._stop is not None:
            if now >= self._stop.next_at:
                self._stop.on_time(now)
        elif self._linger_until is not None:
            if now >= self._linger_until:
                self._leftovers = process_tree.living()
                self._begin_stop(now, self.request.grace_s)
        elif _due(now, self._start, self.request.timeout_s):
            self._timed_out = True
            self._begin_stop(now, self.request.grace_s)
        elif _due(now, self._start, self._watch.next_s):
            self._watch.look(os.getpid())
        elif _due(now, self._start, self._input.next_s):
            self._waits_for_input = self._input.look(os.getpid(), self._process.pid)
            if self._waits_for_input:
                self._begin_stop(now, self.request.grace_s)
        elif _due(now, self._start, self._inner.next_s):
            self._inner.postpone()
            self._look_for_launchers(now)
        elif _due(now, self._start, self._launcher.next_s):
            self._launcher_hangs = self._launcher.look(os.getpid(), self._process.pid)
            if self._launcher_hangs:
                self._begin_stop(now, self.request.grace_s)

    def result(self, others: tuple[int, ...]) -> ExecResult:
        """The result, after ``ended``. Processes in ``others`` are never culprits."""
        window = self._account.close()
        self._drain()
        # Ranks that a resource manager's daemons started are no descendants: they report it.
        self._account.cpu_s += cpu_s_here(self._capture.marked_lines)
        foreign, culprits = self._account.judge(window, others)
        status = self._status or 0
        return ExecResult(
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            timed_out=self._timed_out,
            interrupted=self._has_interrupt,
            wall_s=self._wall_s,
            started_at=self._account.started_at,
            cpu_s=self._account.cpu_s,
            server_cpu_s=window.server_s,
            tuner_cpu_s=0.0,
            declared_cpu_s=window.declared_s + self._account.daemons_s,
            max_rss_bytes=self._account.rss_kib * 1024,
            load1=self._account.load1,
            init_s=self._init_s,
            window_s=window.seconds,
            before=window.before,
            after=window.after,
            foreign=foreign,
            culprits=culprits,
            output_bytes=self._capture.total_bytes,
            matches=self._capture.matches,
            json_line=self._capture.json_line,
            ranks=self._watch.result(),
            leftovers=self._leftovers,
            marked=self._capture.marked_lines,
            printed=self._capture.printed_lines,
            waits_for_input=self._waits_for_input,
            launcher_stuck=self._launcher_hangs,
            inner_launcher=self._inner_launcher,
            stops=0,  # The tuner counts them.
            files=self._watch.files.close(),
            **self._capture.texts,
        )

    def _drain(self) -> None:
        """Read what is left in the pipes.

        No process of the run is left to write. An outside process that holds the pipe could write
        for ever, so at most the size of a pipe is read.
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


_PIPE_BYTES = 1024 * 1024


class LaunchFailure(Exception):
    """exec failed; ``step`` is cwd, stdin or exec."""

    def __init__(self, step: str, errno: int) -> None:
        super().__init__(step, errno)
        self.step = step
        self.errno = errno


@dataclass(frozen=True)
class LauncherProcess:
    """The running launcher; ``start_time`` is the monotonic clock just before exec.

    ``waiting_cpu_s`` is the CPU time of its process before the request arrived.
    """

    pid: int
    start_time: float
    stdout: int
    stderr: int
    waiting_cpu_s: float = 0.0


class PreparedLaunch:
    """A child that waits for its program; a fork takes longer than an exec.

    It ends when the server ends, or closes its end of the pipe. ``fds_to_close`` are descriptors
    that the child closes. The child has its own session, like the launcher that it becomes.
    """

    def __init__(self, fds_to_close: tuple[int, ...] = ()) -> None:
        server = os.getpid()
        self.stdout, stdout = _pipe()
        self.stderr, stderr = _pipe()
        self._report, report = os.pipe()
        order, self._order = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            become_program(server, order, (self._order, *fds_to_close), stdout, stderr, report)
        for fd in (stdout, stderr, report, order):
            os.close(fd)

    def start(self, request: ExecRequest) -> LauncherProcess | None:
        """Let the child become the program; None if it has ended already.

        Raises :class:`LaunchFailure`.
        """
        order = {name: getattr(request, name) for name in ("argv", "env", "cwd", "stdin")}
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._order, "wb") as pipe:
            pipe.write(json.dumps(order).encode("ascii"))
        words = dict(line.split(" ", 1) for line in read_all(self._report).splitlines())
        if "failed" in words or "at" not in words:
            os.close(self.stdout)
            os.close(self.stderr)
            os.waitpid(self.pid, 0)
            if not words:
                return None
            step, number = words.get("failed", "exec 0").split()
            raise LaunchFailure(step, int(number))
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)
        at, waiting_cpu_s = map(float, words["at"].split())
        return LauncherProcess(self.pid, at, self.stdout, self.stderr, waiting_cpu_s)

    def end(self) -> None:
        """End the child without a program."""
        for fd in (self._order, self._report, self.stdout, self.stderr):
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def launch(request: ExecRequest, preparation: PreparedLaunch | None = None) -> LauncherProcess:
    """Start the program in a new session; raises :class:`LaunchFailure`."""
    process = None if preparation is None else preparation.start(request)
    process = process or PreparedLaunch().start(request)
    if process is None:
        raise LaunchFailure("exec", 0)
    return process


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    # The user's pipe memory is limited: the usual 64 KiB work too, only more slowly.
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write
