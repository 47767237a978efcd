"""A program of the command line: what it is called, and what is said where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.config.app import App, Input, app_from_command, program_name
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


def test_the_only_input_is_meant_where_none_is_named() -> None:
    app = App(name="a", command=("x", "{input}"), inputs={"big": Input(args=("7",))})
    assert app.usual_input == "big"
    assert app.program(None) == ("x", "big", "7")
    two = app.model_copy(update={"inputs": {"big": Input(), "small": Input()}})
    with pytest.raises(UsageError, match=r"no input 'default'.*its file"):
        two.input(None)
    with pytest.raises(UsageError, match="no input 'default'; its inputs: big, small"):
        two.input("default")
