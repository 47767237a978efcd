"""Refusals: errors that a test expects by their class and code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

Kind = TypeVar("Kind", bound=Exception)


@contextmanager
def refused(kind: type[Kind], *codes: str) -> Iterator[pytest.ExceptionInfo[Kind]]:
    """Expect an error of this class whose ``code`` is one of ``codes``."""
    with pytest.raises(kind) as refusal:
        yield refusal
    assert getattr(refusal.value, "code", None) in codes, refusal.value


@contextmanager
def failed(number: int) -> Iterator[pytest.ExceptionInfo[OSError]]:
    """Expect an operating system's error of this number (``errno``)."""
    with pytest.raises(OSError) as failure:
        yield failure
    assert failure.value.errno == number, failure.value


def refusal(kind: type[Exception], call: Callable[..., object], *arguments: Any) -> str:
    """The text of the error of this class that a call raises, for a snapshot.

    Without argparse's list of choices, which each Python spells in its own way.
    """
    with pytest.raises(kind) as caught:
        call(*arguments)
    return str(caught.value).partition(" (choose from ")[0]
