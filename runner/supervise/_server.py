"""The supervision process: one light, single-threaded event loop below the tuner.

It is a child subreaper, so every process of a run is below it whatever becomes of its parents.
It ends, with all of them, when the tuner is gone.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
import traceback
from types import FrameType
from typing import Any

from runner.supervise import _frames, _launch
from runner.supervise._run import ProcessTable, Run
from runner.supervise._tree import living, signal_tree
from runner.supervise.model import request_from_json, result_to_json

_ORPHAN_GRACE_S = 2.0
"""Grace for the tree when the tuner is gone: nobody waits for it any more."""


class Server:
    """Serves ``sock`` until the tuner closes it or dies."""

    def __init__(self, sock: socket.socket, tuner: int) -> None:
        self._sock = sock
        self._tuner = tuner
        self._table = ProcessTable()
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
        # A handler must exist for the pipe to be written; the work is done in the loop.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        # Ctrl-C is for the tuner to decide.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return read

    def _watch_tuner(self) -> None:
        """End of file alone is not enough: a forked child of the tuner may hold its socket."""
        # Kernel before 5.3 or a sandbox: end of file remains.
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

    def _timeout(self) -> float | None:
        due = self._run.next_at() if self._run is not None else None
        return None if due is None else max(0.0, due - time.monotonic())

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        # Between any two lines of the loop: only note it.
        self._told_to_leave = True

    def _drain_wakeups(self) -> None:
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            return

    def _on_caller(self) -> None:
        message = _frames.receive(self._sock)
        if message is None:
            self._selector.unregister(self._sock)
            self._leave()
        elif message["op"] == "run":
            self._start(message["request"])
        elif message["op"] == "stop" and self._run is not None:
            self._run.interrupt(self._run.request.grace_s, hurry=message["hurry"])

    def _start(self, data: dict[str, Any]) -> None:
        try:
            self._run = Run(request_from_json(data), self._table)
        except _launch.LaunchFailure as failure:
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
        if run.ended:
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

    def _reply(self, message: dict[str, Any]) -> None:
        try:
            _frames.send(self._sock, message)
        except OSError:
            # The tuner died meanwhile; its end of file or pidfd ends the loop.
            return

    def _leave(self) -> None:
        self._leaving = True
        if self._run is not None:
            grace_s = min(self._run.request.grace_s, _ORPHAN_GRACE_S)
            self._run.interrupt(grace_s, hurry=False)


def main(fd: int, tuner: int) -> None:
    """Serve the inherited socket ``fd`` for the process ``tuner``."""
    sock = socket.socket(fileno=fd)
    sock.set_inheritable(False)
    try:
        _launch.become_subreaper()
        server = Server(sock, tuner)
        _frames.send(sock, {"ready": os.getpid()})
        server.serve()
    except BaseException:
        # Whatever happened, the tuner shall know it, and the tree must not stay.
        text = traceback.format_exc()
        end_everything()
        _frames.send(sock, {"crashed": text})
        raise


def end_everything() -> None:
    """Kill all descendants and wait for them."""
    for _ in range(500):
        signal_tree(signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)
