"""The version, the list of changes and what is installed say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import autotune

ROOT = Path(__file__).parents[2]


def test_the_newest_section_is_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    sections = re.findall(
        r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$",
        (ROOT / "docs" / "project" / "changelog.md").read_text(),
        re.MULTILINE,
    )
    assert sections[0] == version
    assert sections == sorted(sections, key=lambda v: [*map(int, v.split("."))], reverse=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+", autotune.__version__)
