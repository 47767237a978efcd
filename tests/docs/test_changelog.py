"""The version, the list of changes and what is installed say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import autotune

ROOT = Path(__file__).parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text()


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_the_newest_section_is_this_version_or_the_one_that_comes() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    found = re.findall(
        r"^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)$", CHANGES, re.MULTILINE
    )
    assert len(found) == CHANGES.count("\n## ")
    sections = [number for number, _ in found]
    assert sections == sorted(sections, key=numbers, reverse=True)
    (newest, when), *others = found
    assert numbers(newest) > numbers(version) if when == "unreleased" else newest == version
    assert all(when != "unreleased" for _, when in others)
    assert re.fullmatch(r"\d+\.\d+\.\d+", autotune.__version__)


def test_the_citation_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation
    assert f"## {project['version']} ({re.findall('date-released: (.*)', citation)[0]})" in CHANGES
