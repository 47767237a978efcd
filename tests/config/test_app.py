"""A program of the command line: what it is called, and what is said where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.config.app import app_from_command, program_name
from autotune.errors import UsageError


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("./cg.A.x -v", "cg.A.x"),
        ("python3 hello.py", "hello.py"),
        ("/usr/bin/python3.11 -u -X utf8 /a/b/solve.py 7", "solve.py"),
        ("python3 -m runner.apps.jacobi3d --input tiny", "runner.apps.jacobi3d"),
        ("python3 -c pass", "python3"),
        ("bash run.sh", "run.sh"),
        ("python3", "python3"),
    ],
)
def test_a_script_gives_the_name_not_its_interpreter(line: str, name: str) -> None:
    assert program_name(line.split()) == name


def test_the_remedy_names_what_to_type(work: object) -> None:
    Path("hello.py").write_text("")
    Path("run").write_text("")
    for first, remedy in (
        ("hello.py", "-- python3 hello.py"),
        ("./hello.py", "-- python3 ./hello.py"),
        ("run", "chmod \\+x ./run"),
        ("./nothere", "Check its path"),
        ("nothere", "for example ./nothere "),
    ):
        with pytest.raises(UsageError, match=remedy):
            app_from_command((first,), None, None)
