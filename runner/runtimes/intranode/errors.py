"""The errors of the library, with messages for the user."""

from __future__ import annotations

from runner.errors import RunnerError


class IntranodeError(RunnerError):
    """The ranks of a node cannot work together as asked; ``exit_code`` is for applications."""

    exit_code = 1


class ConfigError(IntranodeError):
    """A configuration that cannot be; the message names the switch."""

    exit_code = 2


class RegionError(IntranodeError):
    """Memory that cannot take part: not shared, of the wrong size, or of too many dimensions."""

    exit_code = 2


class RankLost(IntranodeError):
    """Ranks of the node have died, so what this one waits for may never happen."""
