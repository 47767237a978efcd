"""Counts the faults that were injected, and says so at the end."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

INJECTED: Counter[str] = Counter()


@pytest.fixture
def fault() -> Callable[[str], None]:
    """Note one fault of a kind; the test fails where it was not survived."""

    def note(kind: str) -> None:
        INJECTED[kind] += 1

    return note


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word on the command line of everything that a test starts; none of it may be left."""
    word = f"chaos-{os.getpid()}-{time.monotonic_ns()}"
    yield word
    end = time.monotonic() + 15
    while (left := carrying(word)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, f"left over: {left}"


def carrying(word: str) -> list[int]:
    """Processes with a word on their command line, other than this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word.encode() in words and state not in "ZX":
                found.append(int(entry.name))
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if INJECTED:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(INJECTED.items()))
        terminalreporter.write_line(f"faults injected: {sum(INJECTED.values())} ({counts})")
