"""A program of the command line: what it is called, and what is said where it is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.config.app import App, Input, app_from_command, load_app
from autotune.config.app_program import program_name
from autotune.config.find import list_configs
from autotune.errors import UsageError
from tests.case_table import case_table
from tests.refusals import refused

FORM, INVALID = "app.cheap_form", "config.invalid"


@case_table(
    ("line", "name"),
    [
        ("./cg.A.x -v", "cg.A.x"),
        ("python3 hello.py", "hello.py"),
        ("/usr/bin/python3.11 -u -X utf8 /a/b/solve.py 7", "solve.py"),
        ("python3 -m runner.programs.apps.jacobi3d --input tiny", "runner.programs.apps.jacobi3d"),
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
        ("run", "chmod +x ./run"),
        ("./nothere", "'./nothere'"),
        ("nothere", " ./nothere "),
    ):
        with refused(UsageError, "program.not_found") as told:
            app_from_command((first,), None, None)
        assert remedy in str(told.value)


def test_the_only_input_is_meant_where_none_is_named() -> None:
    app = App(name="a", command=("x", "{input}"), inputs={"big": Input(args=("7",))})
    assert app.usual_input == "big"
    assert app.program(None) == ("x", "big", "7")
    two = app.model_copy(update={"inputs": {"big": Input(), "small": Input()}})
    with refused(UsageError, "app.input_unknown"):
        two.input(None)
    with refused(UsageError, "app.input_unknown"):
        two.input("default")


CHEAP = """
name = "mine"
command = ["mine", "--steps", "{steps}"]
default_input = "long"

[inputs.long]
args = ["--quiet"]
values = { steps = "1000" }

[inputs.short]
values = { steps = "10" }

[inputs.wide]
ranks = 8
"""


def written(table: str) -> str:
    Path("mine.toml").write_text(CHEAP + table)
    return "./mine.toml"


@pytest.mark.parametrize(
    ("table", "name", "words"),
    [
        ('values = { steps = "50" }', "long (steps = 50)", ("mine", "--steps", "50", "--quiet")),
        (
            'args = ["--tol", "1e-2"]',
            "long (--tol 1e-2)",
            ("mine", "--steps", "1000", "--quiet", "--tol", "1e-2"),
        ),
        ('input = "short"', "short", ("mine", "--steps", "10")),
    ],
)
def test_the_three_cheap_forms(work: object, table: str, name: str, words: tuple[str, ...]) -> None:
    app = load_app(written(f"[fidelity.long]\n{table}\n"))
    cheap, found = app.cheap(None)
    assert found == name
    assert cheap.program(found) == words
    assert app.program(None) == ("mine", "--steps", "1000", "--quiet")


def test_the_cheap_form_of_an_application_without_inputs(work: object) -> None:
    Path("a.toml").write_text(
        'name = "a"\ncommand = ["a", "{input}"]\n[fidelity.default]\nargs = ["-n", "1"]\n'
    )
    cheap, found = load_app("./a.toml").cheap(None)
    assert cheap.program(found) == ("a", "default", "-n", "1")


@case_table(
    ("table", "code", "said"),
    [
        ('[fidelity.lang]\ninput = "short"', FORM, r"fidelity\.lang: .*long, short"),
        ("[fidelity.long]", FORM, r"fidelity\.long: .*input, args"),
        (
            '[fidelity.long]\ninput = "short"\nargs = ["-x"]',
            FORM,
            r"fidelity\.long: .*input\b.*args\b.*;",
        ),
        ('[fidelity.long]\ninput = "long"', FORM, r"fidelity\.long\.input: 'long'.*short, wide"),
        ('[fidelity.long]\ninput = "shirt"', FORM, r"fidelity\.long\.input: 'shirt'"),
        ('[fidelity.long]\ninput = "wide"', FORM, r"'wide'.* 8 .*'long'"),
        ('[fidelity.long.values]\nstep = "1"', FORM, r"values\.step: .*\{step\}.*\bsteps"),
        ('[fidelity.long.values]\nsteps = "1000"', FORM, r"values\.steps: '1000'"),
        ('[fidelity.long]\nimput = "short"', INVALID, r"fidelity\.long\.imput: .*'input'"),
        ('[fidelity.long]\nargs = "-x"', INVALID, r"fidelity\.long\.args: "),
        ("fidelity = 3", INVALID, r"fidelity: "),
    ],
)
def test_a_wrong_cheap_form_is_refused(work: object, table: str, code: str, said: str) -> None:
    with refused(UsageError, code) as told:
        load_app(written(table))
    assert re.search(rf"(?s)mine\.toml: .*{said}", str(told.value)), told.value


def test_an_input_without_a_cheap_form_says_how_to_declare_it() -> None:
    app = App(name="a", command=("a",), inputs={"x": Input(), "y": Input()}, default_input="x")
    with refused(UsageError, "app.no_cheap_form"):
        app.cheap("y")


def test_shipped_cheap_forms_are_right() -> None:
    apps = [load_app(file.name) for file in list_configs("apps")]
    cheap_forms = [(app.name, name, *app.cheap(name)) for app in apps for name in app.fidelity]
    assert cheap_forms
    for program, name, cheap, found in cheap_forms:
        assert found in cheap.inputs, program
        assert found != name, program
