"""What programs under mpirun have said, as the tests of all libraries of a node want it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., Finished]
Commands = Callable[[int, Sequence[Sequence[str]]], list[Finished]]


def verified(done: Finished) -> dict[str, Any]:
    """The result of a program that has verified its data."""
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert result["verified"] is True
    return result


def refused(done: Finished, message: str) -> None:
    """A program has ended with one message, which begins so: ``PROGRAM: error: ...``."""
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    program = message.partition(":")[0]
    assert done.stderr.count(f"{program}: error:") == 1
    assert "Traceback" not in done.stderr


def silent(done: Finished) -> None:
    """A program that prints what is wrong has printed nothing."""
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
