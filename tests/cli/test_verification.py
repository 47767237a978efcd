"""What says that a result is right or wrong: --verify, --verify-absent, --exit-codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built

pytestmark = pytest.mark.mpi
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 2; i < argc; i++)
        puts(argv[i]);
    MPI_Finalize();
    return atoi(argv[1]);
}
"""
"""A rank that prints its arguments from the second on and ends with the first one."""


@pytest.mark.parametrize(
    ("words", "options", "state"),
    [
        ("0 FAILED PASSED", ["--verify-absent", "FAILED"], "unverified"),
        ("0 PASSED", ["--verify-absent", "FAILED", "--verify", "PASSED"], "ok"),
        ("0 PASSED", ["--verify-absent", "FAILED"], "ok"),
        ("0 UNSUCCESSFUL", ["--verify", "SUCCESSFUL"], "unverified"),
        ("3 right", ["--exit-codes", "0,3"], "ok"),
        ("3 right", ["--verify", "right"], "failed"),
        ("4 right", ["--exit-codes", "0,3"], "failed"),
    ],
)
def test_states(
    cli: Cli, library: Library, tmp_path: Path, words: str, options: list[str], state: str
) -> None:
    program = built(library, tmp_path, SOURCE)
    line = ["run", "-n", "1", "--no-guard", "--json", "-", *options, "--", program]
    done = cli(*line, *words.split())
    assert f'"state": "{state}"' in done.out
    if "right" in options:
        assert "--exit-codes 0,3" in done.out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--exit-codes", "0,256"], "exit_codes.range"),
        (["--exit-codes", "one"], "exit_codes.range"),
        (["--verify-absent", "("], "metric.pattern"),
    ],
)
def test_wrong_values(cli: Cli, options: list[str], code: str) -> None:
    done = cli("run", *options, "--", "mpirun", "-np", "1", "true")
    assert done.code == 2
    assert f"[{code}]" in done.err
