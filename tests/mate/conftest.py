"""Every test of a job in one process runs on both cores."""

from __future__ import annotations

import pytest

from runner.runtimes import mate

_ONE_PROCESS = ("test_schedule", "test_solo", "test_wakeups", "test_deadlock")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in _ONE_PROCESS:
        metafunc.parametrize("core", ["native", "python"], indirect=True)


@pytest.fixture(autouse=True)
def core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The core that a configuration has by default."""
    name = str(getattr(request, "param", "native"))
    defaults = mate.Config.__init__.__defaults__
    assert defaults is not None
    assert "native" in defaults
    changed = tuple(name if value == "native" else value for value in defaults)
    monkeypatch.setattr(mate.Config.__init__, "__defaults__", changed)
    assert mate.Config().core == name
    return name
