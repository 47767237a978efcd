"""The store's contract on every back-end.

PostgreSQL is a server that the tests start where it is installed, or the one that
AUTOTUNE_TEST_POSTGRES names (postgresql://..., schemas may be made there); each test gets a schema
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from autotune.errors import UsageError
from autotune.store import Store
from tests.contract.house import HouseContract
from tests.contract.leases import LeaseContract
from tests.contract.store import StoreContract
from tests.contract.store_samples import key, ok
from tests.refusals import refused
from tests.servers import missing_for_postgres, new_schema, postgres_server

WHY = missing_for_postgres()


class TestSqlite(StoreContract, LeaseContract, HouseContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "results.db")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
class TestPostgresql(StoreContract, LeaseContract, HouseContract):
    @pytest.fixture
    def place(self, server: str) -> Iterator[str]:
        with new_schema(server) as url:
            yield url

    def test_another_role_reads_and_writes_with_the_grants_that_are_asked_for(
        self, place: str
    ) -> None:
        with Store.open(place) as store:
            store.add_run(store.study(key()).id, None, "default", 0, 0, ok(1.0))
        with _other_role(place) as (other, grant):
            with refused(UsageError, "store.permission"):
                Store.open(other)
            grant("USAGE ON SCHEMA {schema}", "SELECT ON ALL TABLES IN SCHEMA {schema}")
            with Store.open(other) as store:
                assert [found.runs for found in store.studies()] == [1]
            grant("INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema}")
            with (
                Store.open(other) as store,
                refused(UsageError, "store.permission"),
            ):
                store.study(key(seed=2))
            grant("USAGE ON ALL SEQUENCES IN SCHEMA {schema}")
            with Store.open(other) as store:
                store.add_run(store.study(key(seed=2)).id, None, "default", 0, 0, ok(1.0))
                assert [found.runs for found in store.studies()] == [1, 1]


@contextmanager
def _other_role(place: str) -> Iterator[tuple[str, Callable[..., None]]]:
    """The database as a new role sees it, and what grants it something."""
    import psycopg

    url = make_url(place)
    schema = str(url.query["options"]).partition("search_path=")[2]
    role = f"{schema}_other"
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}")

        def grant(*rights: str) -> None:
            for right in rights:
                connection.execute(f"GRANT {right.format(schema=schema)} TO {role}")

        try:
            options = f"-csearch_path={schema} -crole={role}"
            yield url.update_query_dict({"options": options}).render_as_string(False), grant
        finally:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")
