"""A package of an extra may be missing: tuning a program of one's own needs none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from autotune.extras import EXTRAS, missing_extra
from tests.forked import Done, several

ROOT = Path(__file__).parents[1]
BLOCK = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
ENTRY = """
from autotune.cli import entry
entry()
"""


SEARCH = """
from autotune.strategies import create
from autotune.testing.landscapes import MANY, drive
strategy = create("auto", MANY, seed=0)
assert len(drive(strategy, 3, lambda setting: (1.0, "ok"))) == 3
"""


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process in which no package of an extra can be imported."""
    return subprocess.run(
        [sys.executable, "-c", BLOCK.format(packages=set(EXTRAS)) + ENTRY, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"AUTOTUNE_STORE": str(folder / "results.db")},
    )


MISSING = {
    ("dataset", "describe", "grid-node"): "data",
    ("anova", "grid-node"): "analysis",
    ("search", "--app", "jacobi3d"): "programs",
    ("calibrate",): "programs",
    ("collectives",): "programs",
    ("ui",): "ui",
    ("mate", "translate", "program.py"): "translate",
}
"""Commands that need a package of an extra."""
READING = (("dataset", "list"), ("doctor", "--quick"), ("space", "show", "openmpi"))
IMPORTS = """
import autotune.api.search
import autotune.cli.calibrate
import autotune.cli.collectives
import autotune.cli.doctor
"""
"""What most of these commands import, without the packages of extras."""
OutcomeOf = Callable[[tuple[str, ...]], Done]


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory: pytest.TempPathFactory) -> OutcomeOf:
    """What one of these commands does; all of them share a start, in the first test's place."""
    folder = tmp_path_factory.mktemp("extras")
    output = tmp_path_factory.mktemp("output")
    (folder / "program.py").write_text("print(1)\n")

    @cache
    def all_of() -> dict[tuple[str, ...], Done]:
        lines = (*MISSING, *READING)
        prelude = BLOCK.format(packages=set(EXTRAS)) + IMPORTS
        environment = os.environ | {"AUTOTUNE_STORE": str(folder / "results.db")}
        commands = [("autotune", *words) for words in lines]
        results = several(commands, output, prelude, cwd=str(folder), env=environment)
        return dict(zip(lines, results, strict=True))

    return lambda words: all_of()[words]


@pytest.mark.parametrize(("words", "extra"), MISSING.items(), ids=[*map(" ".join, MISSING)])
def test_a_missing_extra_is_named_with_the_command_to_copy(
    outcome_of: OutcomeOf, words: tuple[str, ...], extra: str
) -> None:
    done = outcome_of(words)
    assert done.returncode == 2, done.stderr
    assert "[install.extra]" in done.stderr
    assert f'"mpi-autotune[{extra}]"' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_what_needs_no_extra_works_without(outcome_of: OutcomeOf, words: tuple[str, ...]) -> None:
    done = outcome_of(words)
    assert done.returncode == 0, done.stderr


def test_the_default_strategy_needs_no_extra() -> None:
    """In a large space, where its model draws samples."""
    code = BLOCK.format(packages=set(EXTRAS)) + SEARCH
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.mpi
def test_a_run_needs_no_extra(tmp_path: Path) -> None:
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    done = _run(tmp_path, "run", "--no-guard", "--ranks", "1", "--", sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr


def test_any_other_missing_package_is_no_extra() -> None:
    assert missing_extra(ModuleNotFoundError("no", name="numpy")) is None
    assert missing_extra(ModuleNotFoundError("no")) is None


def test_the_extras_are_those_of_the_project_and_all_has_each() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = said["optional-dependencies"]
    distribution = {"sklearn": "scikit-learn", "psycopg": "psycopg[binary]"}
    for package, (extra, _) in EXTRAS.items():
        name = distribution.get(package, package)
        assert any(one.startswith(f"{name}>=") for one in extras[extra]), package
        assert not any(one.startswith(f"{name}>=") for one in said["dependencies"]), package
    for extra in {extra for extra, _ in EXTRAS.values()}:
        assert extra in extras["all"][0]
