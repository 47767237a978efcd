"""MPI libraries of the tests' own: made once, whole or not at all; a skip without a registry."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import mpi_environments as own
from tests import skips
from tests.case_table import case_table

ROOT = Path(__file__).parents[1]
NAME = "mpich"
PROCESS = """
import sys, time
from pathlib import Path
from tests import mpi_environments as own

def install(place, package):
    with open(sys.argv[2], "a") as log:
        log.write("x")
    (place / "bin/mpirun").touch()
    time.sleep(float(sys.argv[3]))
    (place / "bin/mpicc").touch()

own.CACHE, own._install = Path(sys.argv[1]), install
place = own.environment("mpich")
assert (place / "mpicc").exists()
print(place)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(own, "CACHE", tmp_path / "cache")
    for name in ("AUTOTUNE_MPICH", "AUTOTUNE_IMPI", own.ALL):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of what pip was to install; it installs nothing."""
    calls = []

    def install(place: Path, package: own.Package) -> None:
        calls.append(package.title)
        (place / "bin/mpirun").touch()

    monkeypatch.setattr(own, "_install", install)
    return calls


def start(cache: Path, log: Path, seconds: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", PROCESS, str(cache), str(log), str(seconds)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(words, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_several_processes_make_it_once(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = [start(cache, log, 1) for _ in range(3)]
    told = [process.communicate(timeout=60)[0].strip() for process in started]
    assert told == [str(cache / NAME / "bin")] * 3
    assert log.read_text() == "x"


def test_what_a_killed_process_left_is_not_used(
    cache: Path, tmp_path: Path, installed: list[str]
) -> None:
    log = tmp_path / "log"
    with start(cache, log, 600) as process:
        while not log.exists() and process.poll() is None:
            time.sleep(0.02)
        (cache / NAME / "left").touch()
        process.send_signal(signal.SIGKILL)
    place = own.environment(NAME)
    assert installed == ["MPICH 5.0.2"]
    assert (place / "mpirun").exists()
    assert not (cache / NAME / "left").exists()


def test_it_is_used_again_until_another_version_is_wanted(
    monkeypatch: pytest.MonkeyPatch, installed: list[str]
) -> None:
    assert own.environment(NAME) == own.environment(NAME)
    assert installed == ["MPICH 5.0.2"]
    newer = own.Package("MPICH 6", ("mpich==6",))
    monkeypatch.setitem(own.PACKAGES, NAME, newer)
    own.environment(NAME)
    assert installed == ["MPICH 5.0.2", "MPICH 6"]


def test_a_large_one_is_made_on_request_only(
    monkeypatch: pytest.MonkeyPatch, installed: list[str]
) -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        own.environment("impi")
    assert installed == []
    assert skips.problem(str(skipped.value)) is None
    monkeypatch.setenv(own.ALL, "all")
    place = own.environment("impi")
    monkeypatch.delenv(own.ALL)
    assert own.environment("impi") == place
    assert installed == ["Intel MPI"]


def test_a_variable_names_another(monkeypatch: pytest.MonkeyPatch, installed: list[str]) -> None:
    monkeypatch.setenv("AUTOTUNE_MPICH", "/opt/mpich/bin")
    assert own.environment(NAME) == Path("/opt/mpich/bin")
    assert installed == []


@pytest.mark.parametrize("variables", [{"PIP_NO_INDEX": "1"}, {"PIP_INDEX_URL": "http://[::1]:9/"}])
def test_without_a_registry_it_is_skipped(
    cache: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "")
    for name, value in {"PIP_CONFIG_FILE": os.devnull, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(pytest.skip.Exception) as skipped:
        own.environment(NAME)
    reason = str(skipped.value)
    assert reason.startswith(
        "no MPICH 5.0.2: pip reaches no registry that has it: Could not find a version"  # data
    )
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    assert skips.problem(reason) is None
    assert not (cache / NAME).exists()


def test_a_run_of_pytest_asks_for_a_registry_once(
    monkeypatch: pytest.MonkeyPatch, installed: list[str]
) -> None:
    def fail(place: Path, package: own.Package) -> None:
        installed.append("tried")
        raise own.NotThereError("no registry")

    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "one")
    with monkeypatch.context() as failing:
        failing.setattr(own, "_install", fail)
        for _ in range(2):
            with pytest.raises(pytest.skip.Exception, match="no registry"):
                own.environment(NAME)
    assert installed == ["tried"]
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "two")
    own.environment(NAME)
    assert installed == ["tried", "MPICH 5.0.2"]


@case_table(
    ("said", "problem"),
    [
        ("ERROR: Could not find a version that satisfies a (from versions: none)", 1),  # data
        ("ERROR: Could not find a version that satisfies a (from versions: 4, 5)", 0),  # data
        ("ERROR: HTTPSConnectionPool(host='a', port=443): Read timed out.", 1),  # data
        ("ERROR: Could not install packages due to an OSError: No space left on device", 0),  # data
        ("WARNING: Retrying after connection broken by 'a'\nERROR: no matching hashes", 0),  # data
        ("", 0),
    ],
)
def test_only_a_registry_that_is_not_reached_is_a_skip(said: str, problem: int) -> None:
    assert (own.unreachable(said) is not None) == bool(problem)
