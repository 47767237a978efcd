"""Files that the documents name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["contributing.md", "extending.md", "testing.md", "python.md", "design.md"]
TOP = "autotune|runner|configs|docs|tests|notebooks|benchmarks|examples"


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    (found,) = (ROOT / "docs").rglob(page)
    named = set(re.findall(rf"`((?:{TOP})/[\w./-]*\w)`", found.read_text()))
    missing = {name for name in named if "NAME" not in name and not (ROOT / name).exists()}
    assert not missing, f"{page} names what is not there"
