"""Benchmarks that pages, tests and scripts name are there, or the text says where they were."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.harness.table import names

ROOT = Path(__file__).parents[2]
PLACES = (
    *("README.md", "docs/**/*.md", "runner/**/*.md", ".ci/*", "datasets/*/card.toml"),
    *("tests/**/*.py", "autotune/**/*.py", "runner/**/*.py"),
)
NAMED = re.compile(r"(?:-m |`)benchmarks[./]([a-z_]+)(?:\.py)?(?: (\w+))?")
GONE = re.compile(r"\b[0-9a-f]{7,8}\b.*\bgone\b|\bgone\b.*\b[0-9a-f]{7,8}\b", re.DOTALL)


def wrong(text: str) -> list[str]:
    """Benchmarks and claims of a text that are not there, and not said to be gone.

    The paragraph or the next one must name the commit.
    """
    parts = re.split(r"\n\s*\n|\n(?=- )", text)
    missing = []
    for number, part in enumerate(parts):
        said = "\n".join(parts[number : number + 2])
        for name, word in NAMED.findall(part):
            place = ROOT / "benchmarks" / name
            there = place.with_suffix(".py").is_file() or place.is_dir()
            there = there and (name != "claim" or word in ("", "NAME", *names()))
            if not (there or GONE.search(said)):
                missing.append(f"{name} {word}".strip())
    return missing


def test_named_benchmarks_exist() -> None:
    texts = [path for place in PLACES for path in ROOT.glob(place)]
    assert len(texts) > 500
    found = {
        f"{path.relative_to(ROOT)}": missing
        for path in texts
        if path != Path(__file__)
        if (missing := wrong(path.read_text()))
    }
    assert found == {}


def test_what_is_not_there_is_found() -> None:
    assert wrong("`python -m benchmarks.claim references`, and `benchmarks/search/tables.py`") == []
    assert wrong("python -m benchmarks.nothing and `benchmarks/none.py`") == ["nothing and", "none"]
    assert wrong("`python -m benchmarks.claim nothing`") == ["claim nothing"]
    assert wrong("    python -m benchmarks.none\n\nCommit 0123abc; its driver is gone.") == []
    assert wrong("    python -m benchmarks.none\n\nIts driver is gone.") == ["none"]
