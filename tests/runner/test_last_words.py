"""A rank below Hydra asks to abort only when its launcher has taken what the rank printed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.mpi.control_variables import PRELOAD, reporting_library

MESSAGE = b"solver: the matrix is singular at row 7\n"
RANK = """
import os, sys
request = int(sys.argv[1])
os.write(request, b"cmd=get key=a\\n")
os.write(2, sys.argv[2].encode())
os.write(request, sys.argv[3].encode())
"""
PMI_1 = "cmd=abort exitcode=3 message=abort\n"
PMI_2 = "    28cmd=abort;exitcode=3;msg=a;\n"
SLOW_S = 0.3
"""How long the launcher does not read: a request that does not wait comes within this time."""


class Rank:
    """A process with the library; ``requests`` is the launcher's end of what it asks for."""

    def __init__(self, library: Path, request: str) -> None:
        self.requests, theirs = os.pipe()
        words = [sys.executable, "-S", "-c", RANK, str(theirs), MESSAGE.decode(), request]
        self.process = subprocess.Popen(
            words,
            env={**os.environ, PRELOAD: str(library)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs,),
        )
        os.close(theirs)

    def next(self, patience_s: float) -> bytes:
        """What it asks for next; b"" if it asks for nothing within this time, or has ended."""
        ready, _, _ = select.select([self.requests], [], [], patience_s)
        return os.read(self.requests, 4096) if ready else b""

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self.requests)


@pytest.fixture(params=[PMI_1, PMI_2], ids=["PMI-1", "PMI-2"])
def rank(request: pytest.FixtureRequest) -> Iterator[Rank]:
    library = reporting_library()
    if library is None:
        pytest.skip("no C compiler")
    started = Rank(library, request.param)
    yield started
    started.end()


def test_the_request_comes_after_the_message_was_taken(rank: Rank) -> None:
    assert rank.next(60) == b"cmd=get key=a\n"
    assert rank.process.stderr is not None
    # The message is there, and as long as nobody takes it there is no request to abort.
    select.select([rank.process.stderr], [], [], 60)
    assert rank.next(SLOW_S) == b""
    assert os.read(rank.process.stderr.fileno(), 4096) == MESSAGE
    assert b"cmd=abort" in rank.next(60)


@pytest.mark.parametrize(
    "rank",
    [PMI_1, pytest.param(PMI_2, marks=pytest.mark.slow)],
    ids=["PMI-1", "PMI-2"],
    indirect=True,
)
def test_a_launcher_that_takes_nothing_does_not_hold_the_rank_for_ever(rank: Rank) -> None:
    assert rank.next(60).startswith(b"cmd=get key=a\n")
    assert b"cmd=abort" in rank.next(60)
    assert rank.process.wait(60) == 0
