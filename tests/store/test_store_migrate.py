"""Moving to a newer schema: a step is kept whole or not at all, and a copy is made before."""

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
from autotune.store.migrate import CURRENT, Schema, prepare
from autotune.store.schema import SCHEMA_VERSION, metadata
from tests.contract.store_samples import key, ok

VIEWS = ("runs_readable", "trials_readable", "studies_readable")


def add_reasons(connection: Connection, dialect: Dialect) -> None:
    """The step 0 -> 1 of these tests: trials get a reason, and the views are made."""
    connection.exec_driver_sql("ALTER TABLE trial ADD COLUMN reason TEXT NOT NULL DEFAULT ''")
    for view in VIEWS:
        connection.exec_driver_sql(f"CREATE VIEW {view} AS SELECT 1 AS one")


def fail_half_way(connection: Connection, dialect: Dialect) -> None:
    add_reasons(connection, dialect)
    connection.exec_driver_sql("ALTER TABLE nonsense ADD COLUMN x TEXT")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of version 0, with a study, a trial and a run in it."""
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1", {"generation": 1})
        store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0))
    with closing(sqlite3.connect(place)) as connection:
        for view in VIEWS:
            connection.execute(f"DROP VIEW {view}")
        connection.execute("ALTER TABLE trial DROP COLUMN reason")
        connection.execute("UPDATE meta SET value = '0' WHERE name = 'schema_version'")
        connection.commit()
    return place


def migrated(place: Path, schema: Schema) -> Path | None:
    database = Database(locate(str(place)))
    try:
        return prepare(database, schema)
    finally:
        database.close()


def version(place: Path) -> str:
    with closing(sqlite3.connect(place)) as connection:
        query = "SELECT value FROM meta WHERE name = 'schema_version'"
        (value,) = connection.execute(query).fetchone()
    return str(value)


def columns(place: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(place)) as connection:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def test_a_step_keeps_the_data_and_leaves_a_copy(old: Path) -> None:
    backup = migrated(old, Schema(1, CURRENT.create, {1: add_reasons}))
    assert backup is not None
    assert (version(old), version(backup)) == ("1", "0")
    assert "reason" not in columns(backup, "trial")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with Store.open(old) as store:
        assert store.backup is None
        (trial,) = store.trials(1)
        assert (trial.setting, trial.attrs, trial.reason) == ({"a": 1}, {"generation": 1}, "")
        store.finish_trial(trial.id, "ok", 1.0, reason="as new")
        assert [run.record for run in store.runs(1)] == [ok(1.0)]


def test_steps_are_made_in_order(old: Path) -> None:
    def second(connection: Connection, dialect: Dialect) -> None:
        connection.exec_driver_sql("UPDATE trial SET reason = 'step 2'")

    assert migrated(old, Schema(2, CURRENT.create, {2: second, 1: add_reasons})) is not None
    assert version(old) == "2"
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT reason FROM trial").fetchall() == [("step 2",)]


def test_a_step_that_fails_changes_nothing(old: Path) -> None:
    with pytest.raises(WorkError, match="nonsense"):
        migrated(old, Schema(1, CURRENT.create, {1: fail_half_way}))
    assert version(old) == "0"
    assert "reason" not in columns(old, "trial")
    assert migrated(old, Schema(1, CURRENT.create, {1: add_reasons})) is not None
    assert version(old) == "1"


def test_a_version_without_a_step_is_refused(old: Path) -> None:
    with pytest.raises(UsageError, match="version 0, from which this autotune cannot move to 1"):
        Store.open(old)
    assert version(old) == "0"


def test_a_newer_version_is_refused_with_both_versions_named(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    Store.open(place).close()
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE meta SET value = '7' WHERE name = 'schema_version'")
        connection.commit()
    expected = f"schema version 7, this autotune knows versions up to {SCHEMA_VERSION}.*pip install"
    with pytest.raises(UsageError, match=expected):
        Store.open(place)
    assert version(place) == "7"


def test_the_current_version_is_opened_without_a_copy(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    Store.open(place).close()
    with Store.open(place) as store:
        assert store.backup is None
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]


def test_the_schema_of_version_1_is_what_was_published(tmp_path: Path) -> None:
    """A change of tables needs a new version and a step; then this test names that version."""
    place = tmp_path / "results.db"
    Store.open(place).close()
    assert SCHEMA_VERSION == 1
    tables = ("meta", "machine", "mpi", "app", "study", "trial", "trial_value", "run")
    found = {table: len(columns(place, table)) for table in (*tables, "run_read_back")}
    assert found == {
        "meta": 2,
        "machine": 7,
        "mpi": 6,
        "app": 9,
        "study": 21,
        "trial": 17,
        "trial_value": 4,
        "run": 35,
        "run_read_back": 7,
    }


def test_the_documentation_names_every_column() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs" / "database.md").read_text()
    lines = {line.split("`")[1]: line for line in document.splitlines() if line.startswith("| `")}
    for table in metadata.sorted_tables:
        missing = [c.name for c in table.columns if f"`{c.name}`" not in lines[table.name]]
        assert missing in ([], ["id"]), table.name
