"""The size of the library: it stays small, and its page says how large it is."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.models import code_of

ROOT = Path(__file__).parents[2]


def test_the_page_says_the_lines_of_the_library() -> None:
    files = sorted((ROOT / "runner" / "runtimes" / "intranode").glob("*.py"))
    code, _ = code_of([str(path) for path in files])
    lines = sum(len(path.read_text().splitlines()) for path in files)
    assert code <= 1500
    page = (ROOT / "docs" / "reference" / "intranode.md").read_text()
    assert re.search(rf"\b{code:,} lines of [^.]*\b{lines:,} ", page)
