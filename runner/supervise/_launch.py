"""fork and exec of the launcher, so that it cannot outlive the supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import time
from dataclasses import dataclass
from typing import NoReturn

from runner.supervise.model import ExecRequest

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PIPE_BYTES = 1024 * 1024
_LIBC = ctypes.CDLL(None, use_errno=True)
# Python ignores these, and what is ignored stays so across exec; SIGINT is the supervisor's own.
_RESET = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


class LaunchFailure(Exception):
    """exec did not happen.  ``step`` is cwd, stdin or exec."""

    def __init__(self, step: str, errno: int) -> None:
        super().__init__(step, errno)
        self.step = step
        self.errno = errno


@dataclass(frozen=True)
class Launched:
    """The launcher: ``started`` is the monotonic clock just before exec."""

    pid: int
    started: float
    stdout: int
    stderr: int


def become_subreaper() -> None:
    """Make orphans below this process its children; raises ``OSError`` if the kernel refuses."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def launch(request: ExecRequest) -> Launched:
    """Start the program in a session of its own; raises :class:`LaunchFailure`."""
    server = os.getpid()
    stdout, stdout_write = _pipe()
    stderr, stderr_write = _pipe()
    report, report_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(request, server, stdout_write, stderr_write, report_write)
    for fd in (stdout_write, stderr_write, report_write):
        os.close(fd)
    words = dict(line.split(" ", 1) for line in _read_all(report).splitlines())
    if "failed" in words or "at" not in words:
        os.close(stdout)
        os.close(stderr)
        os.waitpid(pid, 0)
        step, number = words.get("failed", "exec 0").split()
        raise LaunchFailure(step, int(number))
    os.set_blocking(stdout, False)
    os.set_blocking(stderr, False)
    return Launched(pid, float(words["at"]), stdout, stderr)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    # The user's pipe memory is limited: the usual 64 KiB work too, only slower.
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write


def _read_all(fd: int) -> str:
    parts = b""
    while part := os.read(fd, 4096):
        parts += part
    os.close(fd)
    return parts.decode("ascii")


def _child(request: ExecRequest, server: int, stdout: int, stderr: int, report: int) -> NoReturn:
    """Between fork and exec.  Never returns and never raises into the server's code."""
    step = "exec"
    try:
        for ignored in _RESET:
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # A session of its own: a program that signals its process group must not hit the server.
        os.setsid()
        # Not SIGKILL: a killed mpirun leaves its ranks and files behind, a terminated one does not.
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != server:
            # The server died before the request above was in force.
            os._exit(127)
        step = "cwd"
        if request.cwd is not None:
            os.chdir(request.cwd)
        step = "stdin"
        os.dup2(os.open(request.stdin or os.devnull, os.O_RDONLY), 0)
        step = "exec"
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.write(report, f"at {time.monotonic()!r}\n".encode("ascii"))
        os.execvpe(request.argv[0], list(request.argv), request.env)
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        os.write(report, f"failed {step} {number}\n".encode("ascii"))
    finally:
        os._exit(127)
