"""The help of every program fits a terminal of 80 columns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner import programs

HOME = Path(programs.__file__).parent
PROGRAMS = sorted(
    ".".join(("runner.programs", *file.parent.relative_to(HOME).parts))
    for file in HOME.rglob("__main__.py")
)


def test_the_programs_are_there() -> None:
    assert {"runner.programs.apps.jacobi3d", "runner.programs.micro"} <= set(PROGRAMS)


@pytest.mark.parametrize("module", PROGRAMS)
def test_the_help_of_a_program_fits_80_columns(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    usage, *rest = done.stdout.splitlines()
    assert f"python -m {module} " in usage
    assert max(map(len, (usage, *rest))) <= 80
