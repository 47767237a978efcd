"""Errors of an application that all ranks know about and that rank 0 prints as one message."""

from __future__ import annotations

from runner.errors import RunnerError


class AppError(RunnerError):
    """The work failed; ``exit_code`` is what every rank returns."""

    exit_code = 1


class AppUsageError(AppError):
    """The options were wrong, or do not suit the number of ranks."""

    exit_code = 2
