"""A database that somebody else made: what it holds runs nothing, and does not run for ever."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.store import Store, sqlite
from tests.contract.store_samples import key, ok

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "r.db"
    with Store.open(path) as store:
        study = store.study(key())
        store.add_run(study.id, None, "default", 0, 0, ok(1.0))
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE study RENAME TO study_", f"CREATE VIEW study AS {ENDLESS}"),
        (f"CREATE VIEW mine AS {ENDLESS}",),
        ("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",),
        ("CREATE TEMP TABLE x (a)", "CREATE VIRTUAL TABLE found USING fts5(words)"),
    ],
)
@pytest.mark.parametrize(
    "way", [Store.open, Store.open_existing, Store.open_to_read, Store.open_read_only]
)
def test_programs_of_a_stranger_are_refused(
    place: Path, way: object, statements: tuple[str, ...]
) -> None:
    change(place, *statements)
    with pytest.raises(UsageError) as caught:
        way(place)  # type: ignore[operator]
    assert caught.value.code == "store.foreign_schema"
    assert main(["studies", "--store", str(place)]) == 2


def test_own_views_are_no_strangers(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT count(*) FROM runs_readable").fetchone() == (1,)
    with Store.open(place) as store:
        assert len(store.runs(1)) == 1


def test_a_query_without_end_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LONGEST_S", 0.2)
    with Store.open_read_only(place) as store:
        monkeypatch.setattr(store._database.dialect, "busy_timeout_s", 0.0)
        with pytest.raises(WorkError) as caught, store._database.read() as connection:
            connection.exec_driver_sql(f"SELECT count(*) FROM ({ENDLESS})")
        assert caught.value.code == "store.slow"
        assert len(store.runs(1)) == 1  # The limit is that of one transaction.


def test_the_limit_ends_with_its_transaction(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save of a replaced database is no transaction of the limit, and must not be ended."""
    monkeypatch.setattr(sqlite, "LONGEST_S", 0.0)
    monkeypatch.setattr(sqlite, "_STEPS", 1)
    with Store.open(place, busy_timeout_s=30.0) as store:
        monkeypatch.setattr(store._database.dialect, "busy_timeout_s", 0.0)
        with pytest.raises(AutotuneError):
            store.runs(1)
        time.sleep(0.01)
        place.unlink()
        with pytest.raises(WorkError) as caught:
            store.check_place()
    assert caught.value.code == "store.replaced"
    assert list(place.parent.glob("autotune-saved-*.db"))


def test_functions_of_the_schema_are_not_trusted(place: Path) -> None:
    with Store.open(place) as store, store._database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
