"""The schema version: creation, check and migration to a newer version.

A version never goes back. Each step leads from one version to the next. All steps run in one
transaction when the database is opened, after a backup of the file. If a step fails, the database
stays as it was.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from autotune.errors import UsageError
from autotune.store.database import Database
from autotune.store.dialect import Dialect
from autotune.store.schema import PRODUCT, SCHEMA_VERSION, VIEWS, create_views, meta, metadata

Step = Callable[[Connection, Dialect], None]


def _create_current(connection: Connection, dialect: Dialect) -> None:
    metadata.create_all(connection, checkfirst=False)
    create_views(connection, dialect)


@dataclass(frozen=True)
class Schema:
    """A schema version; ``create`` builds it from nothing, and ``steps[n]`` migrates n - 1 to n."""

    version: int
    create: Step
    steps: Mapping[int, Step] = field(default_factory=dict)


CURRENT = Schema(SCHEMA_VERSION, _create_current)


def prepare_schema(database: Database, schema: Schema = CURRENT) -> Path | None:
    """Bring the database to ``schema``; returns the path of the backup copy, if one was made.

    Raises UsageError for a database of another program, or one newer than this program.
    """
    with database.read() as connection:
        stored_version = _version(connection, database, schema)
    database.ready()
    if stored_version == schema.version:
        return None
    with database.write() as connection:
        database.dialect.lock(connection)
        # Another process may have done it meanwhile.
        stored_version = _version(connection, database, schema)
        if stored_version == schema.version:
            return None
        backup = None
        if stored_version is None:
            schema.create(connection, database.dialect)
            connection.execute(meta.insert().values(name="product", value=PRODUCT))
            connection.execute(
                meta.insert().values(name="schema_version", value=str(schema.version))
            )
        else:
            backup = _back_up(database, stored_version)
            for version in range(stored_version + 1, schema.version + 1):
                schema.steps[version](connection, database.dialect)
            connection.execute(
                meta.update()
                .where(meta.c.name == "schema_version")
                .values(value=str(schema.version))
            )
    return backup


def require_schema(database: Database) -> None:
    """Raise UsageError unless the database has exactly today's schema; nothing is written."""
    with database.read() as connection:
        stored_version = _version(connection, database, CURRENT)
    if stored_version is None:
        raise UsageError(
            f"the results database {database.label} is empty; expected one with studies.  A "
            "search creates it; --store names another",
            code="store.empty",
        )
    if stored_version != CURRENT.version:
        raise UsageError(
            f"{database.label} has schema version {stored_version}, and this command reads version "
            f"{CURRENT.version} only and changes nothing.  Any command that writes migrates it "
            "after a copy was made, for example: autotune studies",
            code="store.version",
        )


def _version(connection: Connection, database: Database, schema: Schema) -> int | None:
    """The version found; None for an empty database. Raises UsageError as
    :func:`prepare_schema`."""
    inspector = inspect(connection)
    tables = set(inspector.get_table_names())
    entries: dict[str, object] = {}
    if "meta" in tables and {"name", "value"} <= {c["name"] for c in inspector.get_columns("meta")}:
        query = select(meta).where(meta.c.name.in_(("product", "schema_version")))
        entries = {row.name: row.value for row in connection.execute(query)}
    if entries.get("product") == PRODUCT:
        _refuse_foreign_schema(connection, database)
        return _check_version(_number(entries.get("schema_version"), database), database, schema)
    foreign = tables & set(metadata.tables) if database.dialect.shares_database else tables
    if foreign:
        raise UsageError(
            f"{database.label} belongs to another program (it has the tables "
            f"{', '.join(sorted(foreign)[:5])}); nothing was changed.  Choose another "
            "database with --store or $AUTOTUNE_STORE",
            code="store.foreign",
        )
    return None


def _number(text: object, database: Database) -> int:
    """The schema version in the table meta; raises UsageError if it is not a number."""
    if isinstance(text, str) and _VERSION.fullmatch(text):
        return int(text)
    raise UsageError(
        f"{database.label} is damaged: the schema version in its table meta is {text!r:.40}, "
        "expected a number; nothing was changed.  Restore a copy from before, or choose "
        "another database with --store",
        code="store.damaged",
    )


def _refuse_foreign_schema(connection: Connection, database: Database) -> None:
    """Raise UsageError for a file with foreign views, triggers or virtual tables.

    They are programs of the file's author: a query of them may never end.
    """
    if database.location.path is None:
        return  # The roles of a server decide who may create them.
    rows = connection.exec_driver_sql(
        "SELECT type, name, lower(substr(ltrim(sql), 1, 14)) FROM sqlite_master"
    )
    foreign = [
        f"the {kind} {name}"
        for kind, name, begin in rows
        if kind == "trigger" or (kind == "view" and name not in VIEWS) or begin == "create virtual"
    ]
    if foreign:
        raise UsageError(
            f"{database.label} has {', '.join(foreign)[:200]}, which autotune did not make; a "
            "view or a trigger of somebody else may never end, so nothing was read.  Remove it "
            "(DROP VIEW, DROP TRIGGER) if it is your own, or choose another database with --store",
            code="store.foreign_schema",
        )


_VERSION = re.compile(r"\d{1,9}", re.ASCII)


def _check_version(version: int, database: Database, schema: Schema) -> int:
    if version > schema.version:
        raise UsageError(
            f"{database.label} has schema version {version}, but this autotune supports "
            f"versions up to {schema.version}; nothing was changed.  Update autotune (pip "
            f"install -U {PRODUCT}) or choose another database with --store",
            code="store.version",
        )
    missing = [v for v in range(version + 1, schema.version + 1) if v not in schema.steps]
    if missing:
        raise UsageError(
            f"{database.label} has schema version {version}, which this autotune cannot "
            f"migrate to {schema.version}; nothing was changed.  Choose another database "
            "with --store",
            code="store.version",
        )
    return version


def _back_up(database: Database, version: int) -> Path | None:
    """Copy the file to its own directory; None for a server, which has its own backups."""
    path = database.location.path
    if path is None:
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    copy = path.with_name(f"{path.name}.v{version}-{stamp}.bak")
    copy.touch(mode=0o600, exist_ok=False)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
