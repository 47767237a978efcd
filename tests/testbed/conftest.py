"""Testbeds of the tests' own: names and directories that no other run uses."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner import testbed as tb
from runner.testbed.model import missing_needs

_numbers = itertools.count()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program is compiled to, once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def places(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Records of their own.  A short path: Open MPI puts sockets below it."""
    runtime = Path(tempfile.mkdtemp(prefix="tb"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(built))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    yield runtime
    shutil.rmtree(runtime)


@pytest.fixture
def rights() -> None:
    """Skip where no testbed can be brought up."""
    lacking = missing_needs()
    if lacking:
        pytest.skip(f"a testbed needs {'; '.join(lacking)}")


@pytest.fixture
def new_name(rights: None) -> Iterator[Callable[[], str]]:
    """Names for testbeds, which are taken down at the end."""
    given: list[str] = []

    def make() -> str:
        given.append(f"t{os.getpid() % 10**6:06d}{next(_numbers) % 100:02d}")
        return given[-1]

    yield make
    for name in given:
        tb.down(name)


@pytest.fixture
def bed(new_name: Callable[[], str]) -> tb.Testbed:
    """Two nodes, no latency (so no calibration), no limit: the fastest to bring up."""
    return tb.up(new_name(), nodes=2, latency_s=0.0, rate_bps=0)
