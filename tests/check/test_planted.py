"""The faults of planted.toml, in a copy of our own applications under the real mpirun."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from runner.runtimes.check import wanted
from tests.apps.conftest import ROOT, Launch

PLANTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("planted.toml").read_text())
pytestmark = [pytest.mark.mpi, pytest.mark.slow]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the launching house, in which faults may be planted."""
    place = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "runner", place / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture
def planted(sources: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """One fault, in its file."""
    fault: dict[str, Any] = request.param
    path = sources / "runner" / "programs" / "apps" / fault["file"]
    text = path.read_text()
    assert text.count(fault["old"]) == 1
    path.write_text(text.replace(fault["old"], fault["new"]))
    yield fault
    path.write_text(text)


def checked(launch: Launch, sources: Path, program: str) -> dict[str, Any]:
    """What the check of a program says."""
    started = PLANTED["programs"][program]
    place = sources / "check.json"
    place.unlink(missing_ok=True)
    if program == "annotated":
        source = sources / "runner" / "programs" / "apps" / "jacobi3d" / "annotated.py"
        translated = sources / "annotated_mate.py"
        assert main(["mate", "translate", str(source), "-o", str(translated), "--force"]) == 0
        words = [str(translated)]
    else:
        variant = [] if "module" in started else ["--variant", "mate"]
        words = ["-P", "-m", f"runner.programs.apps.{started.get('module', program)}", *variant]
    env = {"PYTHONPATH": str(sources), wanted.FILE: str(place)}
    options = [*started["args"], "--affinity", "none"]
    if started.get("module") != "needleman_wunsch":
        options += ["--ranks-per-process", "4"]
    launch(started["processes"], *words, *options, env=env)
    answer: dict[str, Any] = json.loads(place.read_text())
    return answer


def superfluous(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (row["region"], row["dependency"])
        for row in answer["dependencies"]
        if row["verdict"] == "superfluous"
    ]


@pytest.mark.parametrize("program", PLANTED["programs"])
def test_a_right_application_is_left_alone(launch: Launch, sources: Path, program: str) -> None:
    answer = checked(launch, sources, program)
    assert answer["races"] == []
    assert superfluous(answer) == []
    assert answer["conflicts"] > 0


@pytest.mark.parametrize("planted", PLANTED["race"], indirect=True)
def test_each_race_is_named(launch: Launch, sources: Path, planted: dict[str, Any]) -> None:
    races = checked(launch, sources, planted["program"])["races"]
    sides = {
        (race["region"], race["dependency"].rstrip("*@"), race["dependency"].endswith("@"))
        for race in races
    }
    assert (planted["region"], planted["other"], planted["neighbour"]) in sides


@pytest.mark.parametrize("planted", PLANTED["superfluous"], indirect=True)
def test_each_superfluous_dependency_is_named(
    launch: Launch, sources: Path, planted: dict[str, Any]
) -> None:
    answer = checked(launch, sources, planted["program"])
    assert answer["races"] == []
    assert superfluous(answer) == [(planted["region"], planted["dependency"])]
