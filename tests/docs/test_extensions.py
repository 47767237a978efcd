"""The extensions that a page shows pass the suites beside them; its tables name every test."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.testing import StrategyContract, StrategyQuality

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "extending.md"
FILE = re.compile(r"# (\S+\.py)")


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows: each begins with a comment that is its path."""
    files: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in page.read_text(encoding="utf-8").splitlines():
        code = line.removeprefix("    ")
        if line.strip() and code == line:  # The block has ended.
            lines = None
        elif name := FILE.fullmatch(code):
            lines = files.setdefault(name[1], [])
        elif lines is not None:
            lines.append(code)
    return {name: "\n".join(lines).strip() + "\n" for name, lines in files.items()}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("-k", "not Obeyed and not Library"), id="texts"),
        pytest.param(
            ("-k", "Obeyed or Library"), id="launches", marks=[pytest.mark.mpi, pytest.mark.slow]
        ),
    ],
)
def test_the_examples_pass_their_suites(words: tuple[str, ...], tmp_path: Path) -> None:
    files = files_of(PAGE)
    assert {"test_strategy.py", "test_neighbours.py", "test_formats.py"} <= set(files)
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PAGE.parents[2])]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "_hypothesis_pytestplugin",
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


@pytest.mark.parametrize("suite", [StrategyContract, StrategyQuality])
def test_the_tables_name_every_demand(suite: type) -> None:
    head = f"| test of `{suite.__name__}` |"
    (table,) = (
        part for part in PAGE.read_text(encoding="utf-8").split("\n\n") if part.startswith(head)
    )
    rows = [line.split("`")[1] for line in table.splitlines()[2:]]
    tests = [
        name.removeprefix("test_")
        for name, _ in inspect.getmembers(suite)
        if name.startswith("test_") and name in vars(suite)
    ]
    assert sorted(rows) == sorted(tests)
