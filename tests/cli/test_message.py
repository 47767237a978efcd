"""Messages on standard error: prose is folded, and what is to be copied stays whole."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.terminal.message import WIDTH, fold
from autotune.terminal.render import ErrorConsole
from tests.case_table import case_table
from tests.cli.conftest import Cli

LONG = "/scratch/projects/a_rather_long_name_of_a_project/and_its_user/with/a_folder/of_runs"
WHOLE = [
    f"mpirun -n 2 --mca btl '^ofi' {LONG}/program --input '{LONG}/a b.in'",
    f"autotune search --ranks 2 --metric 'Elapsed time of all: (\\S+) s' -- {LONG}/program",
    f"taskset -c 1 mpirun -n 1 --prtemca hwloc_default_cpu_list 1 {LONG}/program",
    "--before 'rm -f one_result_of_a_run.nc another_result_of_a_run.nc a_third_result_of_a_run.nc'",
    "--verify 'The sum of the residuals of all equations is below the limit that was given'",
    f"'{LONG}/a file with blanks in its name.toml'",
    LONG,
]
PROSE = "The words around it are prose, which is longer than one line of a terminal has room for"


@case_table("whole", WHOLE)
@case_table("width", [40, 80, 200])
def test_what_is_to_be_copied_is_whole(whole: str, width: int) -> None:
    text = f"{PROSE}: {whole}.\n{PROSE}; {PROSE}\n  {whole} {whole}"
    lines = fold(text, width).split("\n")
    assert any(whole in line for line in lines)
    assert lines[-1] == f"  {whole} {whole}"
    assert " ".join("\n".join(lines).split()) == " ".join(text.split())
    assert all(len(line) <= min(width, WIDTH) for line in lines if line and line in PROSE)
    assert len(lines) > len(text.split("\n"))


@pytest.mark.parametrize("head", ["", "autotune [area.fault]: "])
def test_prose_has_at_most_80_columns(head: str) -> None:
    lines = fold(f"{head}{PROSE} {PROSE} {PROSE}", 300).split("\n")
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH


def test_a_pipe_gets_whole_lines(capfd: pytest.CaptureFixture[str]) -> None:
    text = f"{PROSE}; {PROSE}: {WHOLE[0]}"
    ErrorConsole(stderr=True, soft_wrap=True, highlight=False).print(text, markup=False)
    assert capfd.readouterr().err == f"{text}\n"


def _at_a_terminal(words: list[str], cwd: Path) -> str:
    """What a command prints at a terminal of 80 columns."""
    own, other = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "dumb"}
    with subprocess.Popen(words, stdin=other, stdout=other, stderr=other, cwd=cwd, env=environment):
        os.close(other)
        printed = b""
        while True:
            try:
                part = os.read(own, 65536)
            except OSError:  # The other end is closed.
                break
            if not part:
                break
            printed += part
    os.close(own)
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--setting", f"@{LONG}/none.conf"),
        pytest.param(("--metric", "("), marks=pytest.mark.slow),
        pytest.param(("--mpi", f"{LONG}/bin"), marks=pytest.mark.slow),
    ],
)
def test_an_error_of_the_command(options: tuple[str, str], tmp_path: Path, cli: Cli) -> None:
    """The lines of a terminal hold what those of a pipe do, and no path is broken."""
    words = ("run", "--ranks", "1", *options, "--", "true")
    printed = _at_a_terminal([sys.executable, "-m", "autotune", *words], tmp_path)
    piped = cli(*words).err
    assert printed.split() == piped.split()
    paths = re.findall(r"\S*/scratch/\S*", piped)
    assert all(path in printed for path in paths)
    assert "autotune [" in printed
    assert all(len(line) <= WIDTH for line in printed.splitlines() if LONG not in line), printed


def test_a_shell_reads_the_line_as_it_was() -> None:
    text = f"{PROSE}; type this: {WHOLE[1]}"
    lines = fold(text, WIDTH).split("\n")
    command = next(line for line in lines if "autotune" in line)
    assert shlex.split(command[command.index("autotune") :]) == shlex.split(WHOLE[1])
