"""Errors of the runner that a user should see as one message, without a traceback."""

from __future__ import annotations


class RunnerError(Exception):
    """Work failed: the message says what was wrong, where, what was expected and what to do."""


class RunnerUsageError(RunnerError):
    """A wrong command: what was asked for does not exist or is out of range."""
