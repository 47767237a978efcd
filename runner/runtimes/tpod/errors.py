"""The errors of a run of tasks, with messages for the user."""

from __future__ import annotations

from collections.abc import Sequence

from runner.errors import RunnerError
from runner.runtimes.workers.failure import with_lines


class TpodError(RunnerError):
    """The tasks cannot be run; ``exit_code`` is for applications that end with it."""

    exit_code = 1


class ConfigError(TpodError):
    """A configuration that cannot be run; the message names the switch."""

    exit_code = 2


class TaskError(TpodError):
    """A task that is wrong under every schedule, such as one with a partner that does not exist."""

    exit_code = 2


class Deadlock(TpodError):
    """Tasks wait for each other, and no message is under way; the text lists them."""

    def __init__(self, waits: Sequence[str]) -> None:
        """``waits``: a line for each task."""
        words = with_lines("deadlock: these tasks wait for each other:", waits)
        super().__init__(words, code="tpod.deadlock")
