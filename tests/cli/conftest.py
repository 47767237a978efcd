"""The command line as a user meets it: exit code, standard output, standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from autotune.cli import main
from tests.documents import check_document, written

HELLO = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(work: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run one command in an empty directory; no traceback is ever right.

    What it writes with ``--json`` has to agree with the published schema of the command.
    """

    def call(*words: str | Path) -> Outcome:
        line = [str(word) for word in words]
        code = main(line)
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err, captured.err
        document = written(line, captured.out) if code in (0, 1) else None
        if document is not None:
            check_document(line, document)
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], list[str]]:
    """A small Python program as words of a command line."""

    def write(text: str) -> list[str]:
        place = tmp_path / "program.py"
        place.write_text(text)
        return [sys.executable, str(place)]

    return write


STEADY = """
import sys
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print(f"{sys.argv[1]}: seconds 0.5, right")
"""


@pytest.fixture
def steady(work: Path) -> str:
    """The name of an application that prints the same figure whatever its setting is.

    A search of it proves nothing, so it is short.
    """
    (work / "steady.py").write_text(STEADY)
    place = work / "configs" / "apps"
    place.mkdir(parents=True)
    (place / "steady.toml").write_text(
        'name = "steady"\ncommand = ["{python}", "steady.py", "{input}"]\n'
        'metric = "seconds ([0-9.]+)"\nverify = "right"\ndefault_ranks = 2\n'
        '[inputs.tiny]\ndescription = "the only one"\n'
    )
    return "steady"
