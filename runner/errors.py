"""Errors of the runner that a user should see as one message, without a traceback."""

from __future__ import annotations


class RunnerError(Exception):
    """Work failed: the message says what was wrong, where, what was expected and what to do.

    ``code`` is ``AREA.FAULT``, in lower case; it stays the same when the message changes.
    """

    def __init__(self, message: str = "", *, code: str = "unspecified.error") -> None:
        super().__init__(message)
        self.code = code


class RunnerUsageError(RunnerError):
    """A wrong command: what was asked for does not exist or is out of range."""
