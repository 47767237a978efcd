"""Files from outside: no waiting, no device, no more than the bound; and those of a testbed."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.files import open_log, open_regular, read_bytes, read_text, write_atomically
from runner.lock.holder import written_holder
from runner.testbed import delay_line, model, state
from tests.refusals import failed, refused


def test_what_fits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a\r\nb\n")
    assert read_bytes(path, 5) == b"a\r\nb\n"
    assert read_text(path, 5) == "a\nb\n"
    with failed(errno.EFBIG):
        read_bytes(path, 4)
    (tmp_path / "link").symlink_to(path)
    assert read_bytes(tmp_path / "link", 5)
    with failed(errno.EINVAL) as failure:
        open_regular(tmp_path / "link", 5, follow=False)
    assert "link" in str(failure.value.strerror)


def test_a_file_that_grows_is_not_read_on() -> None:
    """The kernel says that files of /proc have no bytes."""
    with failed(errno.EFBIG):
        read_bytes(Path("/proc/self/status"), 10)


def test_a_device_or_a_fifo_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(fifo, "text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert fifo.is_fifo()
    before = Path(os.devnull).stat().st_ino
    write_atomically(Path(os.devnull), "text")
    assert Path(os.devnull).stat().st_ino == before
    regular = tmp_path / "regular"
    regular.write_text("begun, ")
    with regular.open("a") as file:
        write_atomically(Path(f"/proc/self/fd/{file.fileno()}"), "ended")
    assert regular.read_text() == "begun, ended"  # data


def test_nothing_else_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    for name, kind in (
        ("fifo", "fifo"),
        ("socket", "socket"),
        ("/dev/zero", "device"),
        (".", "directory"),
    ):
        with failed(errno.EINVAL) as failure:
            read_bytes(Path(name), 100)
        assert kind in str(failure.value.strerror)


def test_a_lock_file_says_nothing_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"\x1b]0;owned\x07 pid 5\n\xff" + b"x" * 10_000)
    said = written_holder(path)
    assert said.isprintable()
    assert len(said) <= 200


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of a testbed; its place."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place = state.directory("testbed")
    place.mkdir(parents=True)
    node = model.Node("testbed1", "198.18.1.1", model.NodeProcess(1, 5), (0,))
    made = model.Testbed(
        "testbed", str(place), "t", "198.18.1", (node,), model.NodeProcess(1, 5), 1, 0.001, 0, 1500
    )
    state.write_testbed(made)
    assert state.read_testbed("testbed") == made
    return place


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("directory", "/tmp/evil"),
        ("name", "other"),
        ("nodes", []),
        ("line_cpu", "1"),
        ("latency_s", "1"),
        ("token", 5),
        ("mtu", -1),
        ("line", {"pid": "1; id", "started_ticks": 5}),
    ],
)
def test_the_record_of_a_testbed_is_its_own(bed: Path, key: str, value: object) -> None:
    """Its launch agent is run, as root: a record does not say where that lies."""
    path = bed / state.RECORD
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    assert state.read_testbed("testbed") is None


def test_a_testbed_that_others_may_write_is_refused(bed: Path) -> None:
    for place in (bed, bed.parent):
        place.chmod(0o777)
        with refused(RunnerError, "file.writable_by_others"):
            state.read_testbed("testbed")
        place.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(bed, 65534, -1)
        with refused(RunnerError, "file.writable_by_others"):
            state.read_testbed("testbed")


def test_a_compiled_program_that_others_may_write_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(delay_line, "FLAGS", ("-O0", *delay_line.FLAGS[1:]))
    place = delay_line.delay_line_program()
    for mode in (0o755, 0o770, 0o777):
        place.chmod(mode)
        place.write_bytes(b"not the program")
        assert delay_line.delay_line_program() == place
        assert place.stat().st_mode & 0o777 == 0o700
        assert place.read_bytes() != b"not the program"


def test_a_log_is_no_link(tmp_path: Path) -> None:
    """Workers write into the current directory, which may be everybody's."""
    mine, log = tmp_path / "mine", tmp_path / "log"
    mine.write_text("mine")
    log.symlink_to(mine)
    with failed(errno.ELOOP):
        open_log(log)
    assert mine.read_text() == "mine"
    log.unlink()
    for _ in range(2):
        with open_log(log) as file:
            file.write(b"line\n")
    assert log.read_text() == "line\nline\n"
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(OSError):
        open_log(log)
