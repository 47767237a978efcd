"""The errors of the library, with messages for the user."""

from __future__ import annotations

from runner.errors import RunnerError


class IntranodeError(RunnerError):
    """The ranks of a node cannot work together as requested; ``exit_code`` is for applications."""

    exit_code = 1


class ConfigError(IntranodeError):
    """An impossible configuration; the message names the switch."""

    exit_code = 2


class RegionError(IntranodeError):
    """Unusable memory: not shared, of the wrong size, or with too many dimensions."""

    exit_code = 2


class RankLost(IntranodeError):
    """Ranks of the node have died, so this one may wait in vain."""
