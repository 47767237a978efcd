"""What all tests share: a home of their own, the machine lock, and the MPI that is there."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.capture import CaptureResult
from hypothesis import settings

from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from runner.mpi.linkage import installation_of, needed_by_python
from runner.supervise import ExecRequest, ExecResult, Supervisor
from tests import planned_layouts, spare_supervisor
from tests.groups import pytest_xdist_make_scheduler
from tests.lines import check_lines
from tests.skips import pytest_sessionfinish
from tests.warm_up import pytest_collection

__all__ = ["pytest_collection", "pytest_sessionfinish", "pytest_xdist_make_scheduler"]

TESTS = Path(__file__).parent

# Ten thousand tests are collected in each process, and all of them stay: nothing to look for.
gc.disable()

# A slow machine is no failure: properties have no time limit.  The plain suite tries the same
# examples in each run, and the nightly run tries others (--hypothesis-profile random). Both are
# said: where CI is set, Hypothesis has other defaults.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("repeatable")

# A shell lets what it starts in the background ignore SIGINT, and so do all processes below. Tests
# of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From now on garbage is collected again, among what the tests make, and not so often."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def machine_lock() -> Iterator[None]:
    """Tests are foreign load: they hold the lock shared, so that nothing is measured beside."""
    with MachineLock("shared"):
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders that are not there yet; ``mktemp`` for each test takes ten times as long."""
    place = tmp_path_factory.mktemp("homes")
    return (place / f"{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's configuration or database, or inherits MPI settings."""
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    for name in list(os.environ):
        if name.startswith(("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_")):
            monkeypatch.delenv(name)
    return home


@pytest.fixture(autouse=True)
def taken_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line to copy that a test captures is one that autotune takes when it is fed back."""
    plain = pytest.CaptureFixture.readouterr

    def checked(self: pytest.CaptureFixture[str]) -> CaptureResult[str]:
        captured = plain(self)
        if isinstance(captured.out, str):
            check_lines(captured.out, captured.err)
        return captured

    monkeypatch.setattr(pytest.CaptureFixture, "readouterr", checked)


@pytest.fixture(scope="session", autouse=True)
def _idle_supervisor() -> Iterator[None]:
    yield
    spare_supervisor.end()


SHARING = {
    *("anova", "api", "calibration", "cases", "cli", "collectives", "datasets", "examples"),
    *("micro", "prediction", "publish", "space", "study", "targets", "trace"),
}
"""Folders of tests whose commands share a supervision process, and what launchers have planned."""


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What launchers have planned, a folder of all processes of pytest."""
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if hasattr(request.config, "workerinput") else own) / "answers"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture(autouse=True)
def _shared_among_tests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, answers: Path
) -> None:
    if request.path.relative_to(TESTS).parts[0] in SHARING:
        spare_supervisor.use(monkeypatch)
        planned_layouts.use(monkeypatch, answers)


def _library() -> Library | None:
    need = needed_by_python(Path(sys.executable))
    own = None if need is None else installation_of(need)
    try:
        return find_library(None if own is None else own.launcher)
    except RunnerError:
        return None


@pytest.fixture(scope="session")
def library() -> Library:
    """The MPI that this Python's mpi4py loads, or the first one on PATH."""
    found = _library()
    if found is None:
        pytest.skip("no mpirun next to this Python or on PATH")
    return found


@pytest.fixture(scope="session")
def open_mpi(library: Library) -> Library:
    """The same, for tests that name options or parameters of Open MPI."""
    if library.family != "openmpi":
        pytest.skip(f"the options are Open MPI's; the MPI here is {library.family}")
    return library


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard is on and sees no foreign load, for tests of what is proven with it.

    Tests share the machine with each other; only what the guard is told of others is changed, in
    this process.  Without the guard nothing is proven, so ``--no-guard`` cannot stand for it.
    """
    run = Supervisor.run

    def alone(self: Supervisor, request: ExecRequest) -> ExecResult:
        seen = run(self, request)
        foreign = replace(seen.foreign, cpu_s=0.0, steal_s=0.0, exceeded=False)
        return replace(seen, foreign=foreign)

    monkeypatch.setattr(Supervisor, "run", alone)


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str, str], None]]:
    """Install a package for this test: entry point group, ``NAME = module:Class``, its text."""
    place = tmp_path / "site"
    monkeypatch.syspath_prepend(str(place))
    modules = []

    def put(group: str, entry: str, text: str) -> None:
        module = entry.partition("=")[2].strip().partition(":")[0]
        modules.append(module)
        data = place / f"{module}-1.0.dist-info"
        data.mkdir(parents=True)
        (place / f"{module}.py").write_text(text)
        (data / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (data / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")

    yield put
    monkeypatch.undo()
    for name in modules:
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def python() -> str:
    return sys.executable


@pytest.fixture(scope="session")
def compiler() -> str:
    place = shutil.which("cc")
    if place is None:
        pytest.skip("no C compiler (cc) on PATH")
    return place
