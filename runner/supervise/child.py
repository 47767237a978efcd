"""The child of the supervision process between fork and exec: it becomes the launcher.

The launcher cannot outlive the supervision process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# Python ignores these signals, and an ignored signal stays ignored across exec. The supervision
# process ignores SIGINT; SIGTERM and SIGCHLD have its handlers until exec.
_RESET = (
    *(signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGTERM, signal.SIGCHLD),
)


def become_program(
    server: int, order: int, fds_to_close: tuple[int, ...], stdout: int, stderr: int, report: int
) -> NoReturn:
    """The child between fork and exec; never returns and never raises into the server's code."""
    step = "exec"
    try:
        signal.set_wakeup_fd(-1)
        for reset in _RESET:
            signal.signal(reset, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # A new session: a program that signals its process group must not hit the server.
        os.setsid()
        # Not SIGKILL: a killed mpirun leaves its ranks and files behind, a terminated one does not.
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != server:
            # The server died before the request above took effect.
            os._exit(127)
        for fd in fds_to_close:
            os.close(fd)
        text = read_all(order)
        if not text:
            os._exit(0)  # No run follows.
        waited_s = time.process_time()
        request = json.loads(text)
        step = "cwd"
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        step = "stdin"
        os.dup2(os.open(request["stdin"] or os.devnull, os.O_RDONLY), 0)
        step = "exec"
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.write(report, f"at {time.monotonic()!r} {waited_s!r}\n".encode("ascii"))
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        os.write(report, f"failed {step} {number}\n".encode("ascii"))
    finally:
        os._exit(127)


def read_all(fd: int) -> str:
    """All text of a pipe, up to its end; closes the pipe."""
    parts = b""
    while part := os.read(fd, 4096):
        parts += part
    os.close(fd)
    return parts.decode("ascii")
