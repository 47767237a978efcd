"""The command line as a user meets it: exit code, standard output, standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from autotune.cli import main
from runner.mpi.library import Library
from tests.documents import check_document, written
from tests.lines import check_lines, strings_in
from tests.mpis import built

HELLO = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
MPI_SHELL = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, status;
    char number[16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(number, sizeof number, "%d", rank);
    setenv("RANK", number, 1);
    snprintf(number, sizeof number, "%d", size);
    setenv("RANKS", number, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    char *words[argc + 2];
    words[0] = "sh";
    words[1] = "-c";
    memcpy(words + 2, argv + 1, argc * sizeof *argv);
    pid_t shell = fork();
    if (shell == 0)
        execv("/bin/sh", words);
    waitpid(shell, &status, 0);
    MPI_Finalize();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
"""
"""An MPI program that is a shell script, its first word; its second one is ``$0`` in it.

Each rank knows its RANK and RANKS.

A rank of it starts in a third of the time of one in Python with mpi4py.
"""


SIZES = f"[parameters.btl_self_eager_limit]\nlevels = {[512 * n for n in range(1, 40)]}\n"
"""A space without placements, about which a launcher is asked before the first proposal.

In a process of its own a search takes half of the CPU time with it.
"""


def settings_title(shown: str) -> str:
    """The title of the table of settings that ``show`` printed."""
    parts = [part for part in shown.split("\n\n") if "\nsetting " in part]
    [title] = [part.partition("\nsetting ")[0] for part in parts]
    return title


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


Cli = Callable[..., Outcome]


@pytest.fixture(scope="session")
def mpi_shell(library: Library, tmp_path_factory: pytest.TempPathFactory) -> str:
    """:data:`MPI_SHELL` for the MPI that is there."""
    return str(built(library, tmp_path_factory.mktemp("mpi_shell"), MPI_SHELL))


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
            check_lines(*strings_in(document))
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


@pytest.fixture
def steady(work: Path, mpi_shell: str) -> str:
    """The name of an application that prints the same figure whatever its setting is.

    A search of it proves nothing, so it is short.
    """
    place = work / "configs" / "apps"
    place.mkdir(parents=True)
    script = 'test $RANK -gt 0 || echo \\"{input}: seconds 0.5, right\\"'
    (place / "steady.toml").write_text(
        f'name = "steady"\ncommand = ["{mpi_shell}", "{script}"]\n'
        'metric = "seconds ([0-9.]+)"\nverify = "right"\ndefault_ranks = 1\n'
        '[inputs.tiny]\ndescription = "the only one"\n'
    )
    return "steady"
