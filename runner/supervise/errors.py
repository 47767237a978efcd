"""What can go wrong when a program is started or supervised."""

from __future__ import annotations

import os

from runner.errors import RunnerError


class StartError(RunnerError):
    """The program could not be started at all; ``errno`` as the system gave it."""

    def __init__(self, program: str, step: str, place: str, errno: int) -> None:
        self.errno = errno
        reason = os.strerror(errno) if errno else "it is not a valid command"
        what = {
            "cwd": f"working directory {place!r} cannot be entered: {reason}; "
            "name a directory that exists and may be entered",
            "stdin": f"standard input {place!r} cannot be read: {reason}; name a readable file",
            "exec": f"program {program!r} cannot be started: {reason}; "
            "expected an executable file, given by path or found in PATH "
            "(a script needs a first line such as #!/bin/sh)",
        }
        super().__init__(what[step])


class SupervisorLost(RunnerError):
    """The supervision process died during a run; the run's processes have been ended."""


class UnkillableError(RunnerError):
    """Processes of a run do not end even by SIGKILL."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C came during a run and the run's processes are gone.

    ``result`` is what was observed, None if the program was not started; where
    ``result.interrupted`` is false the run had finished by itself and its figures count.
    """

    def __init__(self, result: object = None) -> None:
        super().__init__()
        self.result = result
