"""Where the database is, and one clear message for every place that cannot hold one."""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.store import Store, location
from autotune.store.location import locate, mask_password, network_filesystem
from tests.contract.store_samples import key, ok
from tests.refusals import refused

NOBODY = 65534
DENIED = os.strerror(errno.EACCES)
PR_SET_DUMPABLE = 4


@contextmanager
def unprivileged(*mine: Path) -> Iterator[None]:
    """As a user whom file modes bind; root owns everything otherwise."""
    if os.geteuid() != 0:
        yield
        return
    for path in mine:
        os.chown(path, NOBODY, NOBODY)
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    # Changing users hides /proc/self from the process itself; a real user sees its own.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.fixture
def open_directory(tmp_path: Path) -> Path:
    """A directory that another user may enter."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    return tmp_path


def refusal(place: object, code: str) -> str:
    with refused(UsageError, code) as caught:
        Store.open(str(place))
    return str(caught.value)


def test_default_place(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate(None).path == own_home / "data" / "autotune" / "results.db"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert locate(None).path == Path("/home/someone/.local/share/autotune/results.db")
    monkeypatch.setenv("AUTOTUNE_STORE", "~/mine.db")
    assert locate(None).path == Path("/home/someone/mine.db")
    assert locate("other.db").path == Path.cwd() / "other.db"
    monkeypatch.setenv("AUTOTUNE_STORE", "postgresql://u:secret@h/d")
    assert locate(None).path is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///a b.db", "a b.db"),
        ("sqlite:////srv/a.db", "/srv/a.db"),
        ("/srv/a?b#c%20.db", "/srv/a?b#c%20.db"),
    ],
)
def test_places_of_files(text: str, path: str) -> None:
    assert locate(text).path == Path.cwd() / path


def test_odd_file_names_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "a?b#c%20 é.db"
    Store.open(place).close()
    assert place.stat().st_size > 0


def test_postgresql_uses_the_driver_that_is_named_in_the_documentation() -> None:
    assert locate("postgresql://u@h/d").url.drivername == "postgresql+psycopg"
    assert locate("postgres://u@h/d").url.drivername == "postgresql+psycopg"
    assert locate("postgresql+pg8000://u@h/d").url.drivername == "postgresql+pg8000"


@pytest.mark.parametrize(
    "text",
    [
        "mysql://u:secret@h/d",
        "postgresql://u:secret@h:port/d",
        "://u:secret@h",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
    ],
)
def test_urls_that_name_no_results_database(text: str) -> None:
    with refused(UsageError, "store.url") as caught:
        locate(text)
    assert "secret" not in str(caught.value)


def test_passwords_are_masked() -> None:
    assert locate("postgresql://u:secret@h/d").label == "postgresql+psycopg://u:***@h/d"
    assert "secret" not in locate("postgresql://h/d?user=u&password=secret").label
    said = "cannot reach postgres://u:sec:ret@h/d now"
    assert mask_password(said) == said.replace("sec:ret", "***")


def test_a_server_that_does_not_answer() -> None:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is not installed")
    with refused(UsageError, "store.unreachable") as caught:
        Store.open("postgresql://u:secret@127.0.0.1:1/d")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_named() -> None:
    with refused(UsageError, "store.driver_missing"):
        Store.open("postgresql+nosuchdriver://u:secret@h/d")


def test_a_new_database_is_private_and_its_directories_are_made(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b" / "results.db"
    with Store.open(place) as store:
        store.study(key())
        files = sorted(place.parent.iterdir())
        assert [file.name for file in files] == ["results.db", "results.db-shm", "results.db-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    place.touch()
    with Store.open(place) as store:
        assert store.studies() == []


def test_a_directory(tmp_path: Path) -> None:
    assert f"{tmp_path}/results.db" in refusal(tmp_path, "store.path")


def test_a_file_in_the_way_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "results.db", tmp_path / "file" / "more" / "results.db"):
        said = refusal(place, "store.path")
        assert f"{place}: " in said
        assert f"{place}/results.db" not in said


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    text = "a text, much longer than the header of a database\n" * 100
    place.write_text(text)
    refusal(place, "store.foreign")
    assert place.read_text() == text


def test_a_database_of_another_program(tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        connection.execute("INSERT INTO meta VALUES ('product', 'other'), ('schema_version', '1')")
        connection.execute("CREATE TABLE study (id INTEGER)")
        connection.commit()
    before = place.read_bytes()
    assert " meta, study" in refusal(place, "store.foreign")  # data
    assert place.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_a_damaged_database(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    Store.open(place).close()
    place.write_bytes(place.read_bytes()[:100] + b"\xff" * 20000)
    with refused(AutotuneError, "store.damaged"):
        Store.open(place)


def test_a_file_that_may_only_be_read(open_directory: Path) -> None:
    place = open_directory / "results.db"
    Store.open(place).close()
    place.chmod(0o444)
    with unprivileged(open_directory, place):
        assert f"{DENIED}: {place};" in refusal(place, "store.unwritable")


def test_a_directory_that_may_only_be_read(open_directory: Path) -> None:
    place = open_directory / "results.db"
    Store.open(place).close()
    open_directory.chmod(0o555)
    try:
        with unprivileged(open_directory, place):
            assert DENIED not in refusal(place, "store.unwritable"), "the file may be written"
            for missing in ("new.db", "new"):
                place = open_directory / missing
                words = refusal(place if place.suffix else place / "results.db", "store.unwritable")
                assert f"{DENIED}: {place};" in words
    finally:
        open_directory.chmod(0o755)


def test_a_locked_database(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    with Store.open(place, busy_timeout_s=0.05) as store:
        study = store.study(key())
        with closing(sqlite3.connect(place, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused(WorkError, "store.locked"):
                store.add_run(study.id, None, "default", 0, 0, ok(1.0))
            assert store.runs(study.id) == []
            other.execute("ROLLBACK")
        store.add_run(study.id, None, "default", 0, 0, ok(1.0))
        assert len(store.runs(study.id)) == 1


def test_a_lock_that_is_held_while_the_database_is_made(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with refused(WorkError, "store.locked"):
            Store.open(place, busy_timeout_s=0.05)


MOUNTS = [
    ("/", "ext4"),
    ("/home", "nfs4"),
    ("/home/local", "xfs"),
    ("/scratch", "lustre"),
    ("/home-of-others", "ext4"),
    ("/data", "fuse.sshfs"),
    ("/data", "tmpfs"),
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/results.db", None),
        ("/home/me/results.db", "nfs4"),
        ("/home/local/results.db", None),
        ("/home-of-others/results.db", None),
        ("/scratch/results.db", "lustre"),
        ("/data/results.db", None),
    ],
)
def test_network_file_systems_are_known(path: str, kind: str | None) -> None:
    assert network_filesystem(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "lustre", "fuse.sshfs", "beegfs_nodev", "cifs", "9p"])
def test_network_file_systems_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """No such mount can be made in a test, so another list of mounts takes the real one's place."""
    folder = tmp_path / "with blank"
    folder.mkdir()
    table = tmp_path / "mounts"
    shown = str(folder).replace(" ", r"\040")
    table.write_text(f"/dev/x / ext4 rw 0 0\nserver:/ {shown} {kind} rw 0 0\n")
    monkeypatch.setattr(location, "MOUNTS", table)
    message = refusal(folder / "results.db", "store.file_system")
    assert f"({kind})" in message
    assert "PostgreSQL" in message
    assert list(folder.iterdir()) == []


def test_the_mounts_of_this_machine_are_those_that_others_see() -> None:
    seen = {(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)}
    assert seen <= set(location._mounts())
