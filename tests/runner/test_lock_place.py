"""A machine lock that somebody else spoilt, or deletes while it is held; other users as root."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import lock
from runner.errors import RunnerError
from runner.launch import Runner
from runner.lock import LockNews, MachineLock, inherited_mode, renew_locks
from runner.lock import place as lock_place
from runner.lock.holder import holders
from runner.lock.lockfile import LockFile, Unusable
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.mpis import built

ROOT = Path(str(runner.__file__)).parents[1]
PROCESS = Path(__file__).with_name("lock_process.py")
NAME = "autotune-machine.lock"
MALLORY, ALICE, BOB = 12321, 12322, 12323
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")


@pytest.fixture(autouse=True)
def common(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of everybody; it is not below one that other users may not enter."""
    place = Path(tempfile.mkdtemp(prefix="autotune-lock-", dir="/tmp"))
    place.chmod(0o1777)
    monkeypatch.setattr(lock_place, "COMMON", (str(place),))
    monkeypatch.setattr(lock, "_OWN_LOCKS", [])  # Without that of the test session.
    monkeypatch.delenv(lock_place.FILE_VARIABLE, raising=False)
    monkeypatch.delenv(lock.VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield place
    shutil.rmtree(place)


class Process:
    """A process that has the lock, or has not: ``said`` is its last line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: dict[str, Any] = {}
        self._read()

    def run(self) -> None:
        """Let it look at the lock as before a run."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self._read()

    @property
    def news(self) -> list[str]:
        return [str(one["code"]) for one in self.said["news"]]

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.said = json.loads(self.process.stdout.readline())


@contextmanager
def user(
    number: int, place: Path, mode: str = "exclusive", before: Sequence[str] = ()
) -> Iterator[Process]:
    words = [*before, sys.executable, str(PROCESS), str(number), str(place), mode]
    started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Process(started)
    finally:
        started.communicate()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("precious")
    path.symlink_to(target)


def _second_name(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("precious")
    path.hardlink_to(target)


def _private(path: Path) -> None:
    path.touch()
    path.chmod(0o600)


FORMS = {
    "fifo": _fifo, "folder": _folder, "socket": _socket, "link": _link, "hard link": _second_name,
}  # fmt: skip
FILES = ["", ".gate", ".cpus"]


SPOILT = [
    # Each form and each file once; all pairs when slow.
    pytest.param(form, file, marks=[] if number % 3 == place else pytest.mark.slow)
    for number, form in enumerate(FORMS)
    for place, file in enumerate(FILES)
]


@pytest.mark.parametrize(("form", "file"), SPOILT)
def test_a_spoilt_lock_is_replaced_by_one_of_ones_own(common: Path, form: str, file: str) -> None:
    FORMS[form](common / f"{NAME}{file}")
    news: list[LockNews] = []
    with MachineLock("exclusive", 0, news.append):
        [own] = news
        assert own.code == "lock.own"
        path = Path(own.data["path"])
        assert holders(path) == [os.getpid()]
        assert own.data["common"] == str(common / NAME)
        assert (path.parent.stat().st_mode & 0o777, path.parent.stat().st_uid) == (
            0o700,
            os.geteuid(),
        )
        with user(os.geteuid(), common) as other:
            assert other.said["code"] is None  # It is below the holder.
            assert other.said["held"] == "exclusive"
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(lock.VARIABLE)
            for mode in ("exclusive", "shared"):
                with user(os.geteuid(), common, mode) as other:
                    assert other.said["code"] == "lock.busy"
    target = common / "target"
    assert not target.exists() or target.read_text() == "precious"


@as_root
@pytest.mark.parametrize(
    ("file", "mode"),
    [
        ("", 0o600),
        (".cpus", 0o644),
        pytest.param(".gate", 0o600, marks=pytest.mark.slow),
        pytest.param(".cpus", 0o600, marks=pytest.mark.slow),
    ],
)
def test_a_lock_that_others_may_not_open_keeps_each_user_apart_from_himself(
    common: Path, file: str, mode: int
) -> None:
    path = common / f"{NAME}{file}"
    path.touch()
    os.chown(path, MALLORY, MALLORY)
    path.chmod(mode)
    with user(ALICE, common) as alice:
        assert (alice.said["held"], alice.news) == ("exclusive", ["lock.own"])
        with user(ALICE, common, "shared") as again:
            assert again.said["code"] == "lock.busy"
        with user(BOB, common) as bob:
            assert (bob.said["held"], bob.news) == ("exclusive", ["lock.own"])
            paths = [Path(one.said["news"][0]["path"]) for one in (alice, bob)]
        assert [path.stat().st_uid for path in paths] == [ALICE, BOB]
        alice.run()
        assert (alice.said["held"], alice.news) == ("exclusive", [])
    with user(MALLORY, common) as mallory:
        assert (mallory.said["held"], mallory.news) == ("exclusive", [])


@as_root
def test_users_with_a_common_lock_wait_for_each_other(common: Path) -> None:
    with user(ALICE, common) as alice:
        assert (alice.said["held"], alice.news) == ("exclusive", [])
        with user(BOB, common) as bob:
            assert bob.said["code"] == "lock.busy"
            [holder] = bob.said["news"][0]["holders"]
            assert (holder["pid"], holder["user"]) == (alice.process.pid, str(ALICE))


@as_root
@pytest.mark.parametrize(
    "spoil",
    [lambda path: path.chmod(0o600), _fifo, pytest.param(_private, marks=pytest.mark.slow)],
)
def test_a_lock_that_its_owner_spoils_while_it_is_held_is_taken_anew(
    common: Path, spoil: Callable[[Path], None]
) -> None:
    path = common / NAME
    with user(MALLORY, common):
        pass
    with user(ALICE, common) as alice:
        if spoil in (_private, _fifo):
            path.unlink()
        spoil(path)
        os.chown(path, MALLORY, MALLORY)
        alice.run()
        assert (alice.said["held"], alice.news) == ("exclusive", ["lock.lost", "lock.own"])
        with user(ALICE, common) as again:
            assert again.said["code"] == "lock.busy"
        # Root repairs it: what begins then takes the common one, so this one must have it too.
        path.unlink()
        alice.run()
        assert (alice.said["held"], alice.news) == ("exclusive", ["lock.lost"])
        with user(BOB, common) as bob:
            assert bob.said["code"] == "lock.busy"


@pytest.mark.parametrize("spoil", [lambda f: f.chmod(0o755), None])
def test_the_folder_of_ones_own_lock_is_ones_own(
    common: Path,
    spoil: Callable[[Path], None] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder that others may enter, or a link, was made by somebody else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = common / f"autotune-{os.geteuid()}"
    if spoil is None:
        (common / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(common / "elsewhere")
    else:
        folder.mkdir()
        spoil(folder)
    _fifo(common / NAME)
    with MachineLock("exclusive", 0):
        assert inherited_mode() == "exclusive"
        assert list(folder.iterdir()) == []
        assert [path for path in tmp_path.rglob("*.lock") if holders(path) == [os.getpid()]]


@pytest.mark.parametrize(
    ("file", "cpus"), [("", None), ("", frozenset({20000})), (".cpus", frozenset({20000}))]
)
def test_a_deleted_lock_is_taken_anew_before_the_next_run(
    common: Path, file: str, cpus: frozenset[int] | None
) -> None:
    news: list[LockNews] = []
    path = common / NAME
    with MachineLock("exclusive", 0, news.append, cpus):
        renew_locks()
        assert news == []
        (common / f"{NAME}{file}").unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(lock.VARIABLE)
            with user(os.geteuid(), common) as other:
                if not file:
                    assert other.said["held"] == "exclusive"  # The two measure at once.
                    with pytest.raises(RunnerError) as told:
                        renew_locks()
                    assert told.value.code == "lock.busy"
        renew_locks()
        assert holders(path) == [os.getpid()]
        assert inherited_mode() == ("exclusive" if cpus is None else "shared")
        assert {one.code for one in news} <= {"lock.lost", "lock.waiting"}
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(lock.VARIABLE)
            with user(os.geteuid(), common) as other:
                assert other.said["code"] == "lock.busy"
    assert inherited_mode() is None


def test_a_lock_that_the_user_named_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chosen"
    monkeypatch.setenv(lock_place.FILE_VARIABLE, str(path))
    with MachineLock("exclusive", 0):
        path.unlink()
        renew_locks()
        assert holders(path) == [os.getpid()]
        path.unlink()
        path.mkdir()
        with pytest.raises(Unusable):
            renew_locks()


def test_the_common_files_may_be_opened_by_everybody(common: Path) -> None:
    before = os.umask(0o077)
    try:
        with MachineLock("shared"):
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in common.iterdir()}
    finally:
        os.umask(before)
    assert found == {f"{NAME}{end}": 0o666 for end in FILES}


@pytest.mark.mpi
def test_each_run_of_a_program_looks_at_the_lock(
    common: Path, open_mpi: Library, tmp_path: Path
) -> None:
    news: list[LockNews] = []
    options = ("--mca", "btl", "^ofi")
    program = (str(built(open_mpi, tmp_path)),)
    spec = LaunchSpec(program=program, ranks=1, launch_options=options, timeout_s=60)
    with (
        MachineLock("exclusive", 0, news.append),
        Runner(adapter(open_mpi), guard=False) as measuring,
    ):
        (common / NAME).unlink()
        assert measuring.run(spec).state == "ok"
        assert [one.code for one in news] == ["lock.lost"]
        assert holders(common / NAME) == [os.getpid()]


def test_a_process_below_the_holder_looks_too(common: Path) -> None:
    """The wrapper has become the command: nobody above looks at the lock before a run."""
    path = common / NAME
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(lock_place.FILE_VARIABLE, str(path))
        before = (sys.executable, "-m", "runner.lock", "--exclusive", "--wait", "0", "--")
        with user(os.geteuid(), common, before=before) as below:
            assert (below.said["held"], below.news) == ("exclusive", [])
            below.run()
            assert (below.said["held"], below.news) == ("exclusive", [])
            path.unlink()
            below.run()
            assert (below.said["held"], below.news) == ("exclusive", ["lock.lost"])
            assert holders(path) == [below.process.pid]
            below.run()
            assert below.news == []


def test_a_file_that_is_spoilt_as_the_lock_is_taken_is_closed_once(common: Path) -> None:
    """The descriptor is closed, and its number may be another file's by now."""
    path = common / NAME
    one = LockFile(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Unusable):
        one.try_lock("exclusive")
    assert one.fd == -1
    one.close()
