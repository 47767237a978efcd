"""What the tests of a file share is made once, also with several processes of pytest-xdist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = """
import pytest

@pytest.fixture(scope="module")
def shared():
    with open("made", "a") as file:
        file.write("once\\n")

@pytest.mark.parametrize("number", range(8))
def test_shared(shared, number):
    pass
"""
CACHED = """
import pytest
from functools import cache

@cache
def shared():
    with open("made", "a") as file:
        file.write("once\\n")

@pytest.mark.parametrize("number", range(8))
def test_shared(number):
    shared()
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [SHARED, CACHED], ids=["fixture", "cache"])
def test_a_fixture_of_a_module_is_made_in_one_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "conftest.py").write_text("from tests.groups import pytest_xdist_make_scheduler\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_shared.py").write_text(text)
    words = ["-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env={n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "made").read_text() == "once\n"
