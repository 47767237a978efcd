"""The tuner's side of supervision: starts the supervision process and sends it programs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from runner import guard
from runner.errors import RunnerError
from runner.supervise import messages, process_tree
from runner.supervise.interrupts import DeferredInterrupts
from runner.supervise.messages import (
    ExecRequest,
    ExecResult,
    RunInterrupt,
    StartError,
    SupervisorLoss,
    UnkillableError,
    request_to_json,
    result_from_json,
)

_START = Path(__file__).with_name("_start.py")
_STOPPED_MS = 2000
"""Milliseconds between two checks during a run if the server is stopped."""
_MOST_STOPS = 3
"""How often a stopped server is continued within one run."""
_CLOSE_S = 15.0
"""Longest time in seconds to end the server: its grace time and the wait after SIGKILL."""


class Supervisor:
    """The supervision process of one study, as a context manager; it runs one program at a time.

    :meth:`run` may be called from any thread. The first run starts the process; it is restarted
    after a loss.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._number = 0
        self._has_request = False

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the supervision process, or None before the first run."""
        return None if self._server is None else self._server.process.pid

    def start(self) -> None:
        """Start the supervision process now, before the first run."""
        with self._lock:
            self._ready()

    def run(self, request: ExecRequest) -> ExecResult:
        """Run one program and all processes below it to the end; blocks without using the CPU.

        Raises :class:`StartError` if it cannot be started, :class:`SupervisorLoss` if the
        supervision process was killed, :class:`UnkillableError` if a process cannot be ended, and
        :class:`RunInterrupt` (a KeyboardInterrupt) after Ctrl-C, once all processes have ended. A
        second Ctrl-C ends the grace time.
        """
        check_result(request)
        if request.cwd is None:
            request = dataclasses.replace(request, cwd=str(Path.cwd()))
        with self._lock:
            with DeferredInterrupts(self._on_interrupt) as interrupts:
                try:
                    result = self._judge(self._exchange(request, interrupts))
                except RunnerError as error:
                    if interrupts.count:
                        raise RunInterrupt from error
                    raise
            if interrupts.count:
                raise RunInterrupt(result)
            return result

    def stop(self, *, hurry: bool = False) -> None:
        """Stop the run that another thread is waiting for; ``hurry``: without grace time.

        A run that has already ended by itself is not affected.
        """
        server = self._server
        if self._has_request and server is not None:
            server.send({"op": "stop", "hurry": hurry})

    def close(self) -> None:
        """End the supervision process and all processes below it."""
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None

    def _on_interrupt(self, count: int) -> None:
        self.stop(hurry=count > 1)

    def _ready(self) -> _Server:
        if self._server is not None and self._server.process.poll() is not None:
            self._server.clean_up()
            self._server = None
        if self._server is None:
            # Processes left by an earlier tuner that was killed together with its supervisor.
            process_tree.end(process_tree.find_orphans)
            self._server = _Server()
        return self._server

    def _exchange(self, request: ExecRequest, interrupts: DeferredInterrupts) -> dict[str, Any]:
        server = self._ready()
        self._number += 1
        env = {
            **request.env,
            process_tree.MARKER: process_tree.marker(server.identity, self._number),
        }
        message = request_to_json(dataclasses.replace(request, env=env))
        cpu_s = time.process_time()
        server.send({"op": "run", "request": message})
        self._has_request = True
        try:
            # A signal between the two lines above had nothing to stop yet.
            if interrupts.count:
                self._on_interrupt(interrupts.count)
            answer, stops = server.receive()
        finally:
            self._has_request = False
        if answer is None or "crashed" in answer or "unkillable" in answer:
            self._server = None
            raise server.handle_loss(answer or {}, request.grace_s)
        if "failed" in answer:
            step = answer["failed"]
            place = str(request.cwd if step == "cwd" else request.stdin)
            raise StartError(request.argv[0], step, place, answer["errno"])
        cpu_s = time.process_time() - cpu_s
        if answer["leaving"]:
            # The process got SIGTERM from outside: the next run needs a new process.
            server.close()
            self._server = None
        return {**answer["result"], "tuner_cpu_s": cpu_s, "stops": stops}

    @staticmethod
    def _judge(answer: dict[str, Any]) -> ExecResult:
        """The result, judged with the tuner's own CPU time included."""
        result = result_from_json(answer)
        own_s = result.cpu_s + result.server_cpu_s + result.tuner_cpu_s + result.declared_cpu_s
        foreign = guard.judge_foreign_load(result.before, result.after, own_s, result.window_s)
        culprits = result.culprits if foreign.exceeded else ()
        return dataclasses.replace(result, foreign=foreign, culprits=culprits)


class _Server:
    """The supervision process and the socket to it."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Re-entrant: the signal handler may call stop() in the thread that holds the lock.
        self._sending = threading.RLock()
        argv = [sys.executable, "-I", "-S", str(_START), str(theirs.fileno()), str(os.getpid())]
        with theirs:
            # A new session: Ctrl-C in the terminal reaches only the tuner.
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.identity = process_tree.identity(self.process.pid)
        if messages.receive(self.sock) is None:
            raise self.handle_loss({}, 0.0)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; if the other end is gone, the reader notices."""
        with self._sending, contextlib.suppress(OSError):
            messages.send(self.sock, message)

    def receive(self) -> tuple[dict[str, Any] | None, int]:
        """The next message (None if the other end is gone), and how often the process was stopped.

        A program may stop it (SIGSTOP): it is continued, or killed if it is stopped too often.
        """
        stops = 0
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        while not poll.poll(_STOPPED_MS):
            if process_tree.is_stopped(self.process.pid):
                stops += 1
                may_continue = stops <= _MOST_STOPS
                self.process.send_signal(signal.SIGCONT if may_continue else signal.SIGKILL)
        return messages.receive(self.sock), stops

    def close(self) -> None:
        self.sock.close()
        self.process.send_signal(signal.SIGCONT)  # A stopped process would not notice.
        try:
            self.process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.clean_up()

    def clean_up(self, grace_s: float = process_tree.GRACE_S) -> set[int]:
        """After the end of the process: kill its leftover processes, and release everything.

        Only a process that died without its own clean-up can have left any.
        """
        self.sock.close()
        self.process.wait()
        self._errors.close()
        if self.process.returncode == 0:
            return set()
        return process_tree.end(lambda: process_tree.of_server(self.identity), grace_s)

    def handle_loss(self, answer: dict[str, Any], grace_s: float) -> RunnerError:
        """Clean up; returns the error that describes the loss."""
        self.sock.close()
        code = self.process.wait()
        self._errors.seek(0)
        text = str(answer.get("crashed", self._errors.read()[-4000:].decode("utf-8", "replace")))
        left = self.clean_up(grace_s)
        if "unkillable" in answer:
            return UnkillableError(
                f"processes of the run do not end even after SIGKILL: {answer['unkillable']}; "
                "they hang in the kernel (a dead file server, a frozen cgroup) or belong to "
                "another user; end them before you continue",
                code="run.unkillable",
            )
        last = text.strip().splitlines()[-1:] or [f"exit status {code}"]
        remainder = f"; still alive: {sorted(left)}" if left else "; its programs have been ended"
        return SupervisorLoss(
            f"the supervising process (pid {self.process.pid}) ended unexpectedly: "
            f"{last[0]}{remainder}; finished runs are not affected; give the command again",
            code="run.supervisor_lost",
        )


def check_result(request: ExecRequest) -> None:
    """Raise :class:`RunnerError` if a request cannot work."""
    if not request.argv or not request.argv[0]:
        raise RunnerError(
            "nothing to run: the command is empty; give a program and its arguments",
            code="run.command",
        )
    for word in (*request.argv, *request.env, *request.env.values()):
        if "\0" in word:
            raise RunnerError(
                f"{word!r} contains a NUL character, which cannot be passed to a program",
                code="run.command",
            )
    for name, regex in request.patterns.items():
        try:
            re.compile(regex)
        except (re.error, OverflowError, RecursionError) as error:
            raise RunnerError(
                f"pattern {name!r}: {regex!r} is not a regular expression: {error}",
                code="run.pattern",
            ) from None
