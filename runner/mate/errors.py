"""What can go wrong in a MATE job, as messages for the user."""

from __future__ import annotations

from runner.errors import RunnerError


class MateError(RunnerError):
    """The job cannot go on; ``exit_code`` is for applications that end with it."""

    exit_code = 1


class ConfigError(MateError):
    """A configuration that cannot be run; the message names the switch."""

    exit_code = 2


class GraphError(MateError):
    """A graph that is wrong however it is scheduled."""

    exit_code = 2


class Deadlock(MateError):
    """No rank can go on and no message is under way; the message says who waits for what."""


class RankFailed(MateError):
    """A rank raised; ``__cause__`` is what it raised."""
