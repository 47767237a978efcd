"""The errors of a graph, with messages for the user (the thesis' exceptions, Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence

from runner.errors import RunnerError
from runner.runtimes.workers.failure import with_lines


class TarragonError(RunnerError):
    """The graph cannot be run; ``exit_code`` is for applications that end with it (TException)."""

    exit_code = 1


class ConfigError(TarragonError):
    """A configuration that cannot be run; the message names the switch."""

    exit_code = 2


class GraphError(TarragonError):
    """A graph, map or distribution that is wrong under every schedule."""

    exit_code = 2


class CommunicationError(TarragonError):
    """A message that cannot be sent, such as one larger than its edge allows."""


class ExecutionError(TarragonError):
    """A task has failed: it raised an exception, or its state is ERROR.  ``task``: its number."""

    def __init__(self, text: str, task: int) -> None:
        super().__init__(text, code="tarragon.task_failed")
        self.task = task


class Deadlock(TarragonError):
    """Tasks wait and no message is under way; the text lists the tasks and what they wait for."""

    def __init__(self, waits: Sequence[str]) -> None:
        """``waits``: a line for each task."""
        super().__init__(
            with_lines(
                "deadlock: nothing runs, no message is under way, and these tasks wait:", waits
            ),
            code="tarragon.deadlock",
        )
