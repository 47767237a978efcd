"""Moving to a newer schema: a step is kept whole or not at all, and a copy is made before."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from autotune.errors import UsageError, WorkError
from autotune.store import Store
from autotune.store.database import Database, Dialect, Postgresql, Sqlite
from autotune.store.location import locate
from autotune.store.migrate import CURRENT, Schema, prepare_schema
from autotune.store.schema import SCHEMA_VERSION, VIEWS, metadata
from runner.types import ReadBack
from tests.contract.store_samples import key, ok
from tests.servers import missing_for_postgres, new_schema, postgres_server

OLD = SCHEMA_VERSION - 1
"""The version that the steps of these tests begin with; it is none that was published."""
VERSION_1 = (Path(__file__).parent / "version_1.sql").read_text()
WHY = missing_for_postgres()


def add_reasons(connection: Connection, dialect: Dialect) -> None:
    """The step from OLD in these tests: trials get a reason, and the views are made."""
    connection.exec_driver_sql("ALTER TABLE trial ADD COLUMN reason TEXT NOT NULL DEFAULT ''")
    for view in VIEWS:
        connection.exec_driver_sql(f"CREATE VIEW {view} AS SELECT 1 AS one")


def fail_half_way(connection: Connection, dialect: Dialect) -> None:
    add_reasons(connection, dialect)
    connection.exec_driver_sql("ALTER TABLE nonsense ADD COLUMN x TEXT")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of version OLD, with a study, a trial and a run in it."""
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1", {"generation": 1})
        store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0))
    with closing(sqlite3.connect(place)) as connection:
        for view in VIEWS:
            connection.execute(f"DROP VIEW {view}")
        connection.execute("ALTER TABLE trial DROP COLUMN reason")
        set_version(connection, OLD)
    return place


def set_version(connection: sqlite3.Connection, number: int) -> None:
    connection.execute(f"UPDATE meta SET value = '{number}' WHERE name = 'schema_version'")
    connection.commit()


def migrated(place: Path, schema: Schema) -> Path | None:
    database = Database(locate(str(place)))
    try:
        return prepare_schema(database, schema)
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
    backup = migrated(old, Schema(SCHEMA_VERSION, CURRENT.create, {SCHEMA_VERSION: add_reasons}))
    assert backup is not None
    assert (version(old), version(backup)) == (str(SCHEMA_VERSION), str(OLD))
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

    last = SCHEMA_VERSION + 1
    steps = {last: second, SCHEMA_VERSION: add_reasons}
    assert migrated(old, Schema(last, CURRENT.create, steps)) is not None
    assert version(old) == str(last)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT reason FROM trial").fetchall() == [("step 2",)]


def test_a_step_that_fails_changes_nothing(old: Path) -> None:
    with pytest.raises(WorkError, match="nonsense"):
        migrated(old, Schema(SCHEMA_VERSION, CURRENT.create, {SCHEMA_VERSION: fail_half_way}))
    assert version(old) == str(OLD)
    assert "reason" not in columns(old, "trial")
    assert (
        migrated(old, Schema(SCHEMA_VERSION, CURRENT.create, {SCHEMA_VERSION: add_reasons}))
        is not None
    )
    assert version(old) == str(SCHEMA_VERSION)


def test_a_version_without_a_step_is_refused(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        set_version(connection, 0)
    with pytest.raises(
        UsageError, match=f"version 0, which this autotune cannot migrate to {SCHEMA_VERSION}"
    ):
        Store.open(old)
    assert version(old) == "0"


def test_a_newer_version_is_refused_with_both_versions_named(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    Store.open(place).close()
    with closing(sqlite3.connect(place)) as connection:
        set_version(connection, SCHEMA_VERSION + 1)
    expected = (
        f"schema version {SCHEMA_VERSION + 1}, but this autotune supports versions up to "
        f"{SCHEMA_VERSION}.*pip install"
    )
    with pytest.raises(UsageError, match=expected):
        Store.open(place)
    assert version(place) == str(SCHEMA_VERSION + 1)


def test_the_current_version_is_opened_without_a_copy(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    Store.open(place).close()
    with Store.open(place) as store:
        assert store.backup is None
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]


@pytest.fixture(params=["sqlite", "postgresql"])
def version_1(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database as version 1 made it, from its own SQL."""
    if request.param == "sqlite":
        words = {"serial": "INTEGER", "double": "DOUBLE", "without_rowid": " WITHOUT ROWID"}
        place = tmp_path / "results.db"
        with closing(sqlite3.connect(place)) as connection:
            connection.executescript(first(words, Sqlite(place, 1.0)))
        yield str(place)
        return
    if WHY is not None:
        pytest.skip(WHY)
    import psycopg

    words = {"serial": "SERIAL", "double": "DOUBLE PRECISION", "without_rowid": ""}
    with postgres_server() as server, new_schema(server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(first(words, Postgresql()).encode())
        yield url


def first(words: dict[str, str], dialect: Dialect) -> str:
    sql = VERSION_1
    for name, word in (words | {"started": dialect.iso_time("run.started_at")}).items():
        sql = sql.replace(f"{{{name}}}", word)
    return sql


def shape(store: Store) -> dict[str, list[tuple[str, str, bool]]]:
    """Every table and view with its columns, their types and whether they may be empty."""
    with store._database.read() as connection:
        inspector = inspect(connection)
        return {
            name: sorted(
                (c["name"], c["type"].__class__.__name__, c["nullable"])
                for c in inspector.get_columns(name)
            )
            for name in (*inspector.get_table_names(), *inspector.get_view_names())
        }


def test_from_version_1(version_1: str) -> None:
    with Store.open(version_1) as store:
        assert (store.backup is None) == version_1.startswith("postgresql")
        study = store.study(key())
        assert (study.id, study.status, study.result) == (1, "recommended", {"trials": 1})
        assert study.request is None
        done, left = store.trials(1)
        assert (done.setting, done.estimate, done.heartbeat_at) == ({"a": 1}, 0.5, None)
        read_back = {"a": ReadBack("in force", "1", "1", "command")}
        assert [run.record for run in store.runs(1)] == [
            ok(2.0, host="node1"),
            ok(1.0, host="node1", read_back=read_back),
        ]
        # What is new can be used with what is old.
        assert left.heartbeat_at is None
        assert [t.number for t in store.recover(1, gone_hosts=("node1",))] == [1]
        store.finish_trial(left.id, "ok", 1.0)
        assert store.claim_trial(1, {"a": 3}, "a=3") is not None
        assert store.take_role(1, "finish")
        assert store.beat(1) == 2
        store.add_run(1, None, "default", 0, 0, ok(1.0, place="node1 cpus 0"))
        assert [run.record.place for run in store.runs(1)] == ["", "", "node1 cpus 0"]
        store.change_request(1, lambda before: {"argv": []})
        # An outcome as that of an old run is not kept twice.
        store.add_run(1, None, "default", 0, 1, ok(1.0, read_back=read_back))
        found = shape(store)
        with store._database.read() as connection:
            places = connection.execute(text("SELECT place FROM runs_readable")).scalars()
            assert set(places) == {"", "node1 cpus 0"}
            read = text("SELECT run_id, name, state, requested, effective FROM run_read_back")
            rows = [tuple(row) for row in connection.execute(read)]
            assert [row[1:] for row in rows] == [("a", "in force", "1", "1")] * 2
            assert connection.execute(text("SELECT count(*) FROM read_back")).scalar_one() == 1
    with Store.open(version_1) as store:
        assert store.backup is None
        assert len(store.trials(1)) == 3
        assert shape(store) == found


def test_a_migrated_database_is_as_a_new_one(version_1: str, tmp_path: Path) -> None:
    if version_1.startswith("postgresql"):
        with postgres_server() as server, new_schema(server) as url, Store.open(url) as new:
            expected = shape(new)
    else:
        with Store.open(tmp_path / "new.db") as new:
            expected = shape(new)
    with Store.open(version_1) as moved:
        assert shape(moved) == expected


def test_the_schema_of_version_7_is_what_was_published(tmp_path: Path) -> None:
    """A change of tables needs a new version and a step; then this test names that version."""
    place = tmp_path / "results.db"
    Store.open(place).close()
    assert SCHEMA_VERSION == 7
    found = {table.name: len(columns(place, table.name)) for table in metadata.sorted_tables}
    assert found == {
        "meta": 2,
        "machine": 7,
        "mpi": 6,
        "app": 9,
        "study": 22,
        "trial": 18,
        "role": 7,
        "frozen_plan": 4,
        "traced": 3,
        "trial_value": 4,
        "read_back": 2,
        "read_back_value": 7,
        "printed": 3,
        "run": 44,
    }


def test_the_documentation_names_every_column() -> None:
    root = Path(__file__).resolve().parents[2]
    document = (root / "docs" / "reference" / "database.md").read_text()
    lines = {line.split("`")[1]: line for line in document.splitlines() if line.startswith("| `")}
    for table in metadata.sorted_tables:
        missing = [c.name for c in table.columns if f"`{c.name}`" not in lines[table.name]]
        assert missing in ([], ["id"]), table.name
