"""The errors of a MATE job, with messages for the user."""

from __future__ import annotations

from runner.errors import RunnerError


class MateError(RunnerError):
    """The job cannot continue; ``exit_code`` is for applications that end with this error."""

    exit_code = 1


class ConfigError(MateError):
    """A configuration that cannot be run; the message names the switch."""

    exit_code = 2


class GraphError(MateError):
    """A graph that is wrong under every schedule."""

    exit_code = 2


class Deadlock(MateError):
    """No rank can continue and no message is under way; the text says what each rank waits for."""


class RankFailed(MateError):
    """A rank raised an exception; ``__cause__`` is that exception."""
