"""Errors of an application, raised on all ranks and printed by rank 0 as one message."""

from __future__ import annotations

from runner.errors import RunnerError


class AppError(RunnerError):
    """The work failed; ``exit_code`` is what every rank returns."""

    exit_code = 1


class AppUsageError(AppError):
    """The options are wrong, or do not fit the number of ranks."""

    exit_code = 2
