"""What people had in public reports, rebuilt small, and the right answer: rows of cases.toml."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import UsageError
from autotune.space import load_space
from autotune.targets.launcher_line import parse_launcher_line
from autotune.targets.setting_syntax import read_settings
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.cli.conftest import Cli, cli  # noqa: F401
from tests.lines import refused
from tests.mpis import built, library_named

HERE = Path(__file__).parent
FILES, PROGRAMS = HERE / "files", HERE / "programs"
TABLE: dict[str, list[dict[str, Any]]] = tomllib.loads((HERE / "cases.toml").read_text())


def rows(kind: str) -> list[Any]:
    return [pytest.param(row, id=row["id"].replace(" ", "-")) for row in TABLE[kind]]


@case_table("row", TABLE["line"])
def test_a_launch_line(row: dict[str, Any]) -> None:
    words = tuple(shlex.split(row["words"]))
    if "code" in row:
        with pytest.raises(UsageError) as refusal:
            parse_launcher_line(words)
        assert refusal.value.code == row["code"]
        return
    line = parse_launcher_line(words)
    assert line.ranks == row["ranks"]
    assert line.program == tuple(shlex.split(row["program"]))
    assert line.options == tuple(shlex.split(row["options"]))
    assert line.placement == row["placement"]
    assert list(line.left_out) == row.get("dropped", [])


@case_table("row", TABLE["line"])
def test_a_launch_line_is_taken_or_answered(row: dict[str, Any]) -> None:
    """As it stands, or the line that is given in its place."""
    assert refused(row["words"]) is None


@pytest.mark.parametrize("row", rows("file"))
def test_a_file_as_a_setting(open_mpi: Library, row: dict[str, Any]) -> None:
    space, text = load_space("openmpi", open_mpi), f"@{FILES / row['file']}"
    if "code" in row:
        with pytest.raises(UsageError) as refusal:
            read_settings([text], space, open_mpi)
        assert refusal.value.code == row["code"]
    else:
        assert dict(read_settings([text], space, open_mpi)[1][0]) == row["values"]


@pytest.fixture(scope="session")
def program(
    open_mpi: Library, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[str]]:
    """The words that start a program of the folder ``programs``, which is compiled once."""

    @cache
    def compiled(name: str) -> str:
        place = tmp_path_factory.mktemp(Path(name).stem)
        return str(built(open_mpi, place, (PROGRAMS / name).read_text(), "-fopenmp", "-lm"))

    def words(name: str) -> list[str]:
        if name.endswith(".py"):
            return [sys.executable, "-m", "mpi4py.futures", str(PROGRAMS / name)]
        return [compiled(name)]

    return words


@pytest.fixture(scope="session")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Library], str]:
    """A program that each library can start."""

    @cache
    def compiled(launcher: str) -> str:
        library = find_library(launcher)
        place = tmp_path_factory.mktemp(library.family)
        return str(built(library, place, (PROGRAMS / "sums.c").read_text(), "-lm"))

    return lambda library: compiled(library.launcher)


@pytest.mark.mpi
@pytest.mark.parametrize("row", rows("launch"))
def test_a_launch(
    cli: Cli,  # noqa: F811
    open_mpi: Library,
    hello: Callable[[Library], str],
    monkeypatch: pytest.MonkeyPatch,
    row: dict[str, Any],
) -> None:
    """The line, or the one that is given in its place, starts the program."""
    library = library_named(row["mpi"]) if "mpi" in row else open_mpi
    places = {"{program}": hello(library), "{files}": str(FILES), "{python}": sys.executable}
    places["{launcher}"] = library.launcher
    line = row["words"]
    for name, place in places.items():
        line = line.replace(name, place)
    options = ["--no-guard", "--json", "run.json"]
    done = cli("run", *options, "--", *shlex.split(line))
    if row.get("refused"):
        assert done.code == 2, done.text
        lines = done.err.splitlines()
        (proposed,) = [one.strip() for one in lines if " autotune run " in one]  # data
        before, words = proposed.split("autotune run ")
        for variable in shlex.split(before.replace("env ", "")):
            monkeypatch.setenv(*variable.split("=", 1))
        done = cli("run", *options, *shlex.split(words))
    assert done.code == 0, done.text
    assert json.loads(Path("run.json").read_text())["run"]["state"] == "ok"


@pytest.mark.mpi
@pytest.mark.parametrize("row", rows("run"))
def test_a_run(
    cli: Cli,  # noqa: F811
    open_mpi: Library,
    program: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    row: dict[str, Any],
) -> None:
    for name, value in row.get("environment", {}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAUNCHER", open_mpi.launcher)
    own = [word.replace("{files}", str(FILES)) for word in row.get("before", [])]
    own += program(row.get("program", "show.c"))
    own += [str(FILES / row["file"])] if "file" in row else []
    own += row.get("words", [])
    options = [word.replace("{files}", str(FILES)) for word in row.get("options", [])]
    ranks = str(row.get("ranks", 2 if "program" in row else 1))
    common = ["--no-guard", "--mpi", open_mpi.launcher, "-n", ranks, "--json", "run.json"]
    done = cli("run", *common, *options, "--", *own)
    document = json.loads(Path("run.json").read_text())
    if "code" in row:
        assert done.code == row.get("exit", 2)
        assert (document if "code" in document else document["run"])["code"] == row["code"]
        return
    run = document["run"]
    assert run["state"] == row["state"], run
    assert run["verified"] == row.get("verified")
    if "metric_s" in row:
        assert run["metric_s"] == pytest.approx(row["metric_s"], rel=1e-6, abs=0)
    else:
        assert run["metric_s"] is None
