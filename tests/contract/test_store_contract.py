"""The store's contract on every back-end.

PostgreSQL is tried where AUTOTUNE_TEST_POSTGRES names a database (postgresql://...) in which
schemas may be made; each test gets a schema of its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

pytest.register_assert_rewrite("tests.contract.store")

from tests.contract.store import StoreContract  # noqa: E402

VARIABLE = "AUTOTUNE_TEST_POSTGRES"


class TestSqlite(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "results.db")


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no PostgreSQL database")
class TestPostgresql(StoreContract):
    @pytest.fixture
    def place(self) -> Iterator[str]:
        psycopg = pytest.importorskip("psycopg")
        url = make_url(os.environ[VARIABLE])
        schema = f"autotune_test_{uuid.uuid4().hex}"
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            try:
                in_schema = url.update_query_dict({"options": f"-csearch_path={schema}"})
                yield in_schema.render_as_string(hide_password=False)
            finally:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")
