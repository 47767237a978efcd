"""A database that one process opens several times: its locks stay, and no committed run is lost.

POSIX drops all locks of a process on a file when it closes any descriptor of it.  The last process
that closes a database deletes its log, unless it sees the lock of another one.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.store import Store
from autotune.store.location import prepare_file, snapshot
from tests.contract.store_samples import key, ok
from tests.started import rank_environment

WRITER = Path(__file__).with_name("writer.py")


def _opened(way: Callable[[Path], Store]) -> Callable[[Path], None]:
    return lambda place: way(place).close()


def _copied(place: Path) -> None:
    snapshot(place)[0].close()


def _copied_without_log(place: Path) -> None:
    """The other way of a copy: as if the log were empty."""
    log = place.with_name(f"{place.name}-wal")
    aside = log.with_name("aside")
    log.rename(aside)
    try:
        _copied(place)
    finally:
        aside.rename(log)


def _not_a_database(place: Path) -> None:
    other = place.with_name("text.db")
    other.unlink(missing_ok=True)
    os.link(place, other)
    with pytest.raises(UsageError):
        Store.open(other / "in a file")


WAYS: dict[str, Callable[[Path], None]] = {
    "open": _opened(Store.open),
    "open_existing": _opened(Store.open_existing),
    "open_to_read": _opened(Store.open_to_read),
    "open_read_only": _opened(Store.open_read_only),
    "by a link": lambda place: Store.open(_link(place)).close(),
    "prepare_file": prepare_file,
    "snapshot": _copied,
    "snapshot without a log": _copied_without_log,
    "refused": _not_a_database,
}


def _link(place: Path) -> Path:
    link = place.with_name("link.db")
    link.unlink(missing_ok=True)
    link.symlink_to(place)
    return link


def _in_another_process(place: Path, *words: str) -> list[str]:
    command = [sys.executable, str(WRITER), str(place), *words]
    env = rank_environment()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return done.stdout.split()


@pytest.mark.parametrize("way", WAYS)
def test_no_run_is_lost_when_a_process_opens_the_database_again(tmp_path: Path, way: str) -> None:
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key()).id
        stored = [store.add_run(study, None, "search", 0, 0, ok(1.0))]
        WAYS[way](place)
        # Another process closes as the last one that SQLite sees, and one writes.
        _in_another_process(place, "study")
        stored.append(store.add_run(study, None, "search", 0, 0, ok(2.0)))
        theirs = [int(word) for word in _in_another_process(place, "runs", str(study), "2")]
        stored.append(store.add_run(study, None, "search", 0, 0, ok(3.0)))
    with Store.open(place) as store:
        assert {run.id for run in store.runs(study)} == {*stored, *theirs}
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system has no /proc/locks")
def test_the_locks_stay(tmp_path: Path, way: str) -> None:
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        store.study(key())
        before = _locks(place)
        assert before
        WAYS[way](place)
        assert _locks(place) == before


def _locks(place: Path) -> list[list[str]]:
    """The locks of this process on the database."""
    inode = f":{place.stat().st_ino}"
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    mine = [row[1:] for row in rows if row[-3].endswith(inode) and str(os.getpid()) in row]
    return sorted(mine)


def test_a_new_database_is_private_and_leaves_no_other_file(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    before = os.umask(0)
    try:
        prepare_file(place)
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]
