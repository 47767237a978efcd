"""Refusals: errors that a test expects by their class and code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

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
