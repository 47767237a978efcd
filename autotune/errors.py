"""Errors that a user sees as one message; the command line prints them without a traceback.

Each error has a stable code, such as ``metric.cut``: scripts and tests ask for the code, people
read the message.  docs/reference/codes.md lists the codes.
"""

from __future__ import annotations

from typing import Any


class AutotuneError(Exception):
    """Base of the errors that are shown to the user; ``exit_code`` is what the command returns.

    ``code`` is ``AREA.FAULT``, in lower case; it stays the same when the message changes.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[AutotuneError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> AutotuneError:
    """An error from its pickle: ``__init__`` of a subclass may need more than the message."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class UsageError(AutotuneError):
    """The command or its input was wrong: exit code 2."""

    exit_code = 2


class WorkError(AutotuneError):
    """The input was right, but the work failed: exit code 1."""

    exit_code = 1
