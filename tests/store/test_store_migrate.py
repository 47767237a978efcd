"""The schema version: an unknown one is refused, and a step to a newer one is made whole."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from autotune.errors import UsageError, WorkError
from autotune.store import Store
from autotune.store.database import Database
from autotune.store.dialect import Dialect
from autotune.store.location import locate
from autotune.store.migrate import CURRENT, Schema, prepare_schema
from autotune.store.schema import SCHEMA_VERSION, metadata
from tests.contract.store_samples import key, ok


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A database with a study, a trial and a run in it."""
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1", {"generation": 1})
        store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0))
    return place


def set_version(place: Path, number: int) -> None:
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(f"UPDATE meta SET value = '{number}' WHERE name = 'schema_version'")
        connection.commit()


def content(place: Path) -> list[str]:
    """Everything in the database, as SQL."""
    with closing(sqlite3.connect(place)) as connection:
        return list(connection.iterdump())


def migrate(place: Path, schema: Schema) -> Path | None:
    database = Database(locate(str(place)))
    try:
        return prepare_schema(database, schema)
    finally:
        database.close()


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_an_unknown_version_is_refused_and_nothing_changes(place: Path, version: int) -> None:
    set_version(place, version)
    before = content(place)
    for open_it in (Store.open, Store.open_read_only):
        with pytest.raises(UsageError) as caught:
            open_it(place)
        assert caught.value.code == "store.version"
        assert f" {version}" in str(caught.value)
    assert content(place) == before
    assert [path.name for path in place.parent.iterdir()] == ["results.db"]


def add_column(connection: Connection, dialect: Dialect) -> None:
    connection.exec_driver_sql("ALTER TABLE trial ADD COLUMN more TEXT NOT NULL DEFAULT ''")


def fill_column(connection: Connection, dialect: Dialect) -> None:
    connection.exec_driver_sql("UPDATE trial SET more = 'x'")


def fail_half_way(connection: Connection, dialect: Dialect) -> None:
    add_column(connection, dialect)
    connection.exec_driver_sql("ALTER TABLE nonsense ADD COLUMN x TEXT")


def test_steps_are_made_in_order_after_a_copy_or_not_at_all(place: Path) -> None:
    first, last = SCHEMA_VERSION + 1, SCHEMA_VERSION + 2
    before = content(place)
    with pytest.raises(WorkError, match="nonsense"):
        migrate(place, Schema(first, CURRENT.create, {first: fail_half_way}))
    assert content(place) == before
    for copy in place.parent.glob("*.bak"):
        copy.unlink()
    backup = migrate(place, Schema(last, CURRENT.create, {last: fill_column, first: add_column}))
    assert backup is not None
    assert content(backup) == before
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT setting_key, more FROM trial").fetchall() == [
            ("a=1", "x")
        ]
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
        (version,) = connection.execute(
            "SELECT value FROM meta WHERE name = 'schema_version'"
        ).fetchone()
    assert version == str(last)


def test_the_current_version_is_opened_without_a_copy(place: Path) -> None:
    with Store.open(place) as store:
        assert store.backup is None
    assert [path.name for path in place.parent.iterdir()] == ["results.db"]


def test_the_documentation_names_every_column() -> None:
    root = Path(__file__).resolve().parents[2]
    document = (root / "docs" / "reference" / "database.md").read_text()
    lines = {line.split("`")[1]: line for line in document.splitlines() if line.startswith("| `")}
    for table in metadata.sorted_tables:
        missing = [c.name for c in table.columns if f"`{c.name}`" not in lines[table.name]]
        assert missing in ([], ["id"]), table.name
