"""Errors of the runner that a user should see as one message, without a traceback."""

from __future__ import annotations

from typing import Any


class CodedError(Exception):
    """An error with a stable code in addition to its message.

    ``code`` is ``AREA.FAULT``, in lower case; it stays the same when the message changes.
    """

    def __init__(self, message: str = "", *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[CodedError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> CodedError:
    """An error from its pickle: ``__init__`` of a subclass may need more than the message."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class RunnerError(CodedError):
    """Work failed: the message says what was wrong, where, what was expected and what to do."""


class RunnerUsageError(RunnerError):
    """A wrong command: a requested thing does not exist or is out of range."""
