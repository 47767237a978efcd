"""The help of every program fits a terminal of 80 columns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner import programs
from tests.forked import Done, several

HOME = Path(programs.__file__).parent
PROGRAMS = sorted(
    ".".join(("runner.programs", *file.parent.relative_to(HOME).parts))
    for file in HOME.rglob("__main__.py")
)


def test_the_programs_are_there() -> None:
    assert {"runner.programs.apps.jacobi3d", "runner.programs.micro"} <= set(PROGRAMS)


@pytest.fixture(scope="module")
def helps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    lines = [(module, "--help") for module in PROGRAMS]
    folder = tmp_path_factory.mktemp("help")
    results = several(lines, folder, "import argparse, numpy", env=os.environ | {"COLUMNS": "80"})
    return dict(zip(PROGRAMS, results, strict=True))


@pytest.mark.parametrize("module", PROGRAMS)
def test_the_help_of_a_program_fits_80_columns(module: str, helps: dict[str, Done]) -> None:
    done = helps[module]
    assert done.returncode == 0, done.stderr
    usage, *rest = done.stdout.splitlines()
    assert f"python -m {module} " in usage
    assert max(map(len, (usage, *rest))) <= 80
