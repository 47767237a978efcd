"""Errors that a user sees as one message; the command line prints them without a traceback.

Each error has a stable code, such as ``metric.cut``: scripts and tests ask for the code, people
read the message.  docs/reference/codes.md lists the codes.
"""

from __future__ import annotations

from runner.errors import CodedError


class AutotuneError(CodedError):
    """Base of the errors that are shown to the user; ``exit_code`` is what the command returns."""

    exit_code = 1


class UsageError(AutotuneError):
    """The command or its input was wrong: exit code 2."""

    exit_code = 2


class WorkError(AutotuneError):
    """The input was right, but the work failed: exit code 1."""

    exit_code = 1
