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


def refusal_of(done: Finished, program: str) -> str:
    """The one message with which a program has ended: ``PROGRAM: error: ...``."""
    assert done.returncode == 2, done.stdout
    begin = f"{program}: error: "
    (line,) = (line for line in done.stderr.splitlines() if begin in line)
    assert "Traceback" not in done.stderr
    return line.partition(begin)[2]


def refusals_of(done: Finished) -> list[list[str]]:
    """What a library has refused, by rank (:mod:`tests.intranode.refusing`)."""
    assert done.returncode == 0, done.stderr
    texts: list[list[str]] = json.loads(done.stdout)
    return texts
