"""Values of a setting in input files: data, bounded, and in the run's own folder only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.api.parameter_file import _write_input_files
from autotune.config.app import App, Input, load_app
from autotune.config.cluster import load_cluster
from autotune.config.figures import known_programs, with_known_figure
from autotune.config.find import list_configs
from autotune.config.input_files import InputRule
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space, load_space
from autotune.targets.input_files import input_texts, with_input_rules, write_input_folder
from autotune.targets.target import Target
from runner.errors import RunnerError
from runner.fresh_copy import write_inputs
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.refusals import refused

APP = App(
    name="own",
    command=("sh", "-c", 'cat in.dat; pwd; echo more > "$(dirname in.dat)/out.dat"; ls -1'),
    verify="^grid",
    input_files={"in.dat": "grid {{p}} {{q}} of {{ranks}}, block {{nb}} ${p} {p}\n"},
    placeholders={"p": "result", "q": "result", "nb": "none"},
    rules=(InputRule(rule="p * q == ranks", reason="one process for each rank"),),
    inputs={"default": Input(values={"p": "1", "q": "{ranks}", "nb": "80"})},
)
SPACE = Space(
    "grid",
    (
        Parameter("p", (1, 2, 3), "file", default=1),
        Parameter("q", (1, 2, 3), "file"),
        Parameter("nb", (32, 80), "file", default=80),
    ),
    facts={"ranks": 2},
)


def test_values_take_the_places_of_their_names() -> None:
    texts = input_texts(APP, None, 2, {"nb": "32"})
    assert texts == {"in.dat": "grid 1 2 of 2, block 32 ${p} {p}\n"}


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "../x", "$(id)", "{{p}}", "x" * 65, "é"])
def test_a_value_is_a_short_word(value: str) -> None:
    with refused(UsageError, "parameter.file_value"):
        input_texts(APP, None, 2, {"nb": value})


def test_a_place_without_a_value_is_refused() -> None:
    app = APP.model_copy(update={"inputs": {}})
    with refused(UsageError, "app.placeholder_unknown"):
        input_texts(app, None, 2, {"nb": "32"})


def test_only_declared_values_vary_and_those_that_change_results_are_verified() -> None:
    more = Space("n", (*SPACE.parameters, Parameter("n", (100, 200), "file")), facts=SPACE.facts)
    with refused(UsageError, "space.placeholder_unknown"):
        with_input_rules(more, APP)
    unverified = APP.model_copy(update={"verify": None})
    with refused(UsageError, "app.verify_missing"):
        with_input_rules(SPACE, unverified)
    harmless = Space("nb", (SPACE["nb"],), facts=SPACE.facts)
    assert with_input_rules(harmless, unverified).names == ("nb",)


def test_rules_of_the_application_keep_the_problem() -> None:
    space = with_input_rules(SPACE, APP)
    assert space.is_valid(Setting({"p": 2, "q": 1}))
    assert not space.is_valid(Setting({"p": 2, "q": 2}))
    assert space.hash != SPACE.hash


def test_the_default_is_the_value_of_the_input() -> None:
    other = APP.model_copy(update={"inputs": {"default": Input(values={"p": "2", "nb": "80"})}})
    with refused(UsageError, "space.other_default"):
        with_input_rules(SPACE, other)
    spaces = {file.name for file in list_configs("spaces")}
    for file in list_configs("apps"):
        app = with_known_figure(load_app(file.name))
        if app.placeholders and app.name in spaces:
            space = load_space(app.name, facts={"ranks": 4})
            for name in app.inputs:
                assert with_input_rules(space, app, name).names == space.names


@pytest.mark.parametrize("name", ["../in.dat", "/tmp/in.dat", "a/b", "..", ""])
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    with refused(RunnerError, "input_file.unwritable"):
        write_inputs(tmp_path, {name: "text"})


def test_a_link_in_a_copy_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "place"
    outside.write_text("kept")
    place.mkdir()
    (place / "in.dat").symlink_to(outside)
    write_inputs(place, {"in.dat": "new"})
    assert (outside.read_text(), (place / "in.dat").read_text()) == ("kept", "new")


@pytest.mark.parametrize(
    "lines",
    [
        '[input_files]\n"../in" = "x"',
        '[input_files]\n".in" = "x"',
        'placeholders = { a = "none" }\n[input_files]\n"in" = "{{b}}"',
    ],
)
def test_a_wrong_file_of_an_application(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f"name = 'own'\ncommand = ['true']\n{lines}\n")
    with refused(UsageError, "app.input_file"):
        load_app(str(path))


def test_shipped_applications_fill_all_their_places() -> None:
    for file in list_configs("apps"):
        app = load_app(file.name)
        for name in app.inputs:
            texts = input_texts(app, name, 4, {})
            assert not any("{{" in text for text in texts.values()), (app.name, name)


def test_an_application_may_name_its_figures_and_a_command_before_each_run() -> None:
    known = {program.program: program for program in known_programs()}
    hpl, lammps = (with_known_figure(load_app(name)) for name in ("hpl", "lammps"))
    assert hpl.metric_rate == known["HPCC"].figure[0].metric_rate
    assert (hpl.verify, hpl.verify_absent) == (known["HPCC"].right, known["HPCC"].wrong)
    assert (lammps.metric_choice, lammps.verify) == ("max", load_app("lammps").verify)
    assert with_known_figure(APP) is APP
    before = load_app("gromacs").preparation("tiny")
    assert "-box 2.2 2.2 2.2" in before[-1]
    library = Library("openmpi", "5.0.11", "/opt/bin", "/opt/bin/mpirun")
    target = Target.of(load_app("gromacs"), "tiny", 2, load_cluster("local"), library)
    assert target.before == before


def test_input_files_of_a_proven_setting_replace_no_others(tmp_path: Path) -> None:
    folder, texts = tmp_path / "found-input", {"in.dat": "nb 32", "b.dat": "x"}
    assert write_input_folder(folder, texts) == folder
    assert write_input_folder(folder, texts) == folder
    (folder / "in.dat").write_text("edited by its user")
    second = tmp_path / "found-input-2"
    assert write_input_folder(folder, texts) == second
    assert (folder / "in.dat").read_text() == "edited by its user"
    assert {file.name: file.read_text() for file in second.iterdir()} == texts
    (second / "in.dat").unlink()
    (second / "in.dat").symlink_to(tmp_path)
    assert write_input_folder(folder, texts) == tmp_path / "found-input-3"


def test_input_files_that_cannot_be_written_become_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    library = Library("openmpi", "5.0.11", "/opt/bin", "/opt/bin/mpirun")
    side = SimpleNamespace(
        target=Target.of(APP, None, 2, load_cluster("local"), library),
        space=with_input_rules(SPACE, APP),
    )
    search = SimpleNamespace(evaluator=SimpleNamespace(side=lambda setting: side))
    result = SimpleNamespace(input_folder=None, warnings=[])
    for place in (tmp_path / "file" / "input", tmp_path / "input"):
        _write_input_files(search, result, Setting({"nb": 32}), place)  # type: ignore[arg-type]
    assert [note.code for note in result.warnings] == ["work.input_unwritten"]
    assert result.input_folder == str(tmp_path / "input")
    assert "block 32" in (tmp_path / "input" / "in.dat").read_text()


@pytest.mark.mpi
def test_a_run_has_its_own_folder(open_mpi: Library, tmp_path: Path) -> None:
    target = Target.of(APP, None, 1, load_cluster("local"), open_mpi, cwd=str(tmp_path))
    space = with_input_rules(SPACE, APP)
    with Runner(adapter(open_mpi), guard=False) as runner:
        spec = target.spec(space, Setting({"nb": 32}))
        record = runner.run(replace(spec, require_mpi=False))
    text, place, *entries = record.stdout_tail.splitlines()
    assert text == "grid 1 1 of 1, block 32 ${p} {p}"
    assert entries == ["in.dat", "out.dat"]
    assert not Path(place).exists()
    assert list(tmp_path.iterdir()) == []
    assert record.verified
