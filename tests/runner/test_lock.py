"""The machine lock between real processes: exclusion, crashes, nesting, hostile files."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import runner
from runner import lock
from runner.errors import RunnerError
from runner.lock import LockNews, MachineLock, inherited_mode
from runner.lock import place as lock_place
from runner.lock.holder import command_of_words, holders
from runner.lock.lockfile import LockFile, Mode
from tests.case_table import case_table
from tests.refusals import refused
from tests.runner.supervising import eventually

ROOT = Path(str(runner.__file__)).parents[1]
HOLD = """
import sys
from runner.lock import MachineLock
with MachineLock(sys.argv[1]):
    print('held', flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file of this test's own, and no lock inherited from the test session."""
    place = tmp_path / "machine.lock"
    monkeypatch.setenv(lock_place.FILE_VARIABLE, str(place))
    monkeypatch.delenv(lock.VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return place


def hold(mode: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HOLD, mode]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def wrapper(*words: str) -> list[str]:
    return [sys.executable, "-m", "runner.lock", *words]


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
    ],
)
def test_modes_between_processes(path: Path, held: str, wanted: Mode, free: bool) -> None:
    holder = hold(held)
    waits: list[LockNews] = []
    try:
        if free:
            with MachineLock(wanted, 0, waits.append):
                assert inherited_mode() == wanted
            assert waits == []
        else:
            with (
                pytest.raises(RunnerError, match=f"pid {holder.pid}"),
                MachineLock(wanted, 0, waits.append),
            ):
                pass
            [news] = waits
            assert news.code == "lock.waiting"
            [who] = news.data["holders"]
            assert (who["pid"], who["kill"]) == (holder.pid, f"kill {holder.pid}")
            assert who["command"].startswith("python")
            assert (who["user"], who["host"]) == (getpass.getuser(), socket.gethostname())
            assert 0 <= time.time() - who["since"] < 600
    finally:
        holder.communicate("")
    with MachineLock("exclusive", 0):
        assert holders(path) == [os.getpid()]
        assert f"pid {os.getpid()}" in path.read_text()
    assert inherited_mode() is None
    assert holders(path) == []


def test_crash_of_the_holder_frees_the_lock() -> None:
    holder = hold("exclusive")
    holder.kill()
    holder.wait()
    with MachineLock("exclusive", 0):
        pass


def test_waiting_ends_when_the_holder_does() -> None:
    holder = hold("exclusive")
    with MachineLock("exclusive", 30, lambda news: holder.send_signal(signal.SIGKILL)) as mine:
        assert mine.waited_s > 0
    holder.wait()


def test_stream_of_shared_holders_does_not_starve_exclusive_use(path: Path) -> None:
    """Who waits for exclusive use goes before shared users that come later."""
    first = hold("shared")
    waiting = subprocess.Popen(
        [sys.executable, "-c", HOLD, "exclusive"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    gate = path.with_name(path.name + ".gate")
    assert eventually(lambda: holders(gate) == [waiting.pid])
    with pytest.raises(RunnerError), MachineLock("shared", 0):
        pass
    first.communicate("")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "held\n"
    waiting.communicate("")


def test_nested_use_does_not_wait_for_itself() -> None:
    with MachineLock("shared", 0):
        with MachineLock("exclusive", 0) as inner:
            assert inner.waited_s == 0
            assert inherited_mode() == "shared"
        assert inherited_mode() == "shared"
    assert inherited_mode() is None


def test_wrapper_passes_lock_and_exit_code_on() -> None:
    """Two levels below, with the descriptor closed on the way: still inherited, no deadlock."""
    inner = (
        "import sys\nfrom runner.lock import *\n"
        "with MachineLock('exclusive', 0): print(inherited_mode()); sys.exit(7)"
    )
    outer = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {inner!r}]))"
    done = subprocess.run(
        wrapper("--shared", "--", sys.executable, "-c", outer), stdout=subprocess.PIPE, text=True
    )
    assert (done.stdout, done.returncode) == ("shared\n", 7)
    with MachineLock("exclusive", 0):
        pass


def test_wrapper_keeps_the_lock_while_the_command_runs(path: Path) -> None:
    running = subprocess.Popen(wrapper("--shared", "--", "cat"), stdin=subprocess.PIPE)
    assert eventually(lambda: holders(path) == [running.pid])
    busy = subprocess.run(
        wrapper("--exclusive", "--wait", "0", "--", "true"), capture_output=True, text=True
    )
    assert busy.returncode == 1
    assert f"pid {running.pid} (cat)" in busy.stderr
    assert "Traceback" not in busy.stderr
    running.communicate(b"")
    assert subprocess.run(wrapper("--exclusive", "--wait", "0", "--", "true")).returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--shared", "--", "no-such-command"), 127), (("--shared", "--"), 2), (("--", "true"), 2)],
)
def test_wrapper_says_what_was_wrong(words: tuple[str, ...], code: int) -> None:
    done = subprocess.run(wrapper(*words), capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "claim", ["", "exclusive", "exclusive:1:3", "exclusive:{pid}:0", "shared:{pid}:{fd}", "x:y:z"]
)
def test_claims_that_are_not_true_are_not_believed(
    claim: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LockFile(path)  # open, but not locked
    monkeypatch.setenv(lock.VARIABLE, claim.format(pid=os.getpid(), fd=file.fd))
    assert inherited_mode() is None
    file.close()


def test_every_user_may_open_the_file(path: Path) -> None:
    old = os.umask(0o077)
    try:
        with MachineLock("shared"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(old)


def test_links_and_other_things_are_refused(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    with pytest.raises(RunnerError, match=str(path)), MachineLock("exclusive", 0):
        pass
    path.unlink()
    path.hardlink_to(victim)
    with refused(RunnerError, "lock.unusable"), MachineLock("exclusive", 0):
        pass
    path.unlink()
    os.mkfifo(path)
    with refused(RunnerError, "lock.unusable"), MachineLock("exclusive", 0):
        pass
    path.unlink()
    path.mkdir()
    with pytest.raises(RunnerError, match=str(path)), MachineLock("exclusive", 0):
        pass
    assert victim.read_text() == "precious"


def test_deleted_file_excludes_nobody_so_it_is_opened_anew(path: Path) -> None:
    file = LockFile(path)
    path.unlink()
    assert file.try_lock("exclusive")
    assert holders(path) == [os.getpid()]
    file.close()


def test_default_place_does_not_depend_on_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(lock_place.FILE_VARIABLE)
    first = lock_place.lock_path()
    monkeypatch.setenv("TMPDIR", "/somewhere/else")
    monkeypatch.setenv("HOME", "/somewhere/else")
    assert lock_place.lock_path() == first
    assert first.parent.stat().st_mode & 0o1002 == 0o1002


@case_table(
    ("words", "name"),
    [
        (
            "python3 /opt/venv/bin/autotune search --store postgresql://me:s3cret@h/d",
            "autotune search",
        ),
        ("/usr/bin/python3.11 -I -X dev -m autotune run -- ./p s3cret", "autotune run"),
        ("python /opt/autotune/__main__.py worker s3cret", "autotune worker"),
        ("python3 -W error tool.py s3cret", "tool.py"),
        ("python3 -c s3cret", "python3"),
        ("python3 -m", "python3"),
        ("/home/me/autotune --store s3cret", "autotune"),
        ("./mpirun -n 2 s3cret", "mpirun"),
    ],
)
def test_of_a_command_line_only_the_name_is_told(words: str, name: str) -> None:
    assert command_of_words(words.split(), "comm") == name


def test_of_a_title_that_a_process_gave_itself_nothing_is_told() -> None:
    assert command_of_words(["worker postgresql://me:s3cret@h/d"], "worker") == "worker"


def test_a_lock_file_holds_no_argument(path: Path) -> None:
    script = path.with_name("h")
    script.write_text(HOLD)
    words = ["python", "h", "exclusive", "s3cret"]
    holder = subprocess.Popen(
        words, executable=sys.executable, cwd=path.parent, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    written = path.read_text()
    with pytest.raises(RunnerError) as told, MachineLock("shared", 0):
        pass
    holder.communicate("")
    assert f"pid {holder.pid}" in written
    assert f"pid {holder.pid}" in str(told.value)
    assert "s3cret" not in written + str(told.value)
