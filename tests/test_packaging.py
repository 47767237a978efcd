"""The source distribution has all of the repository, and the classifiers fit the requirements."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
OF_THE_BUILDER = {"/pyproject.toml", "/.gitignore"}
"""What the builder takes without being told."""


def test_the_source_distribution_has_all_that_is_tracked() -> None:
    command = ["git", "ls-tree", "--name-only", "HEAD"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    included = set(CONFIG["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert included | OF_THE_BUILDER == {f"/{name}" for name in tracked.split()}


def test_the_lowest_python_is_a_classifier() -> None:
    project = CONFIG["project"]
    head = "Programming Language :: Python :: 3."
    versions = [int(line.removeprefix(head)) for line in project["classifiers"] if head in line]
    assert project["requires-python"] == f">=3.{min(versions)}"
    assert (ROOT / "autotune" / "py.typed").is_file() == (
        "Typing :: Typed" in project["classifiers"]
    )
