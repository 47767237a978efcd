"""The judge of skipped tests: what is not listed fails, also over the processes of pytest-xdist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import problem

TESTS = """
import pytest

def test_good():
    pass

@pytest.mark.skipif(True, reason={!r})
def test_marked():
    pass
"""


@pytest.mark.parametrize(("reason", "code"), [("the weather", 1), ("no static C library", 0)])
def test_a_reason_that_is_not_listed_fails(tmp_path: Path, reason: str, code: int) -> None:
    (tmp_path / "conftest.py").write_text("from tests.skips import pytest_sessionfinish\n")
    (tmp_path / "test_it.py").write_text(TESTS.format(reason))
    words = ["-p", "no:cacheprovider", "-n", "1", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=Path(__file__).parents[1], timeout=120,
        check=False, capture_output=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout


def test_what_is_said_to_be_missing_and_is_there_fails() -> None:
    assert problem("strategy gp needs json, which is not installed") is not None
    assert problem("munged, sh not installed") is not None
    assert problem("none of no_such_shell is installed") is None
