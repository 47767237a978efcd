"""The store's contract on every back-end.

PostgreSQL is a server that the tests start where it is installed, or the one that
AUTOTUNE_TEST_POSTGRES names (postgresql://..., schemas may be made there); each test gets a schema
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.contract.store", "tests.contract.leases")

from tests.contract.leases import LeaseContract  # noqa: E402
from tests.contract.store import StoreContract  # noqa: E402
from tests.servers import missing_for_postgres, new_schema, postgres_server  # noqa: E402

WHY = missing_for_postgres()


class TestSqlite(StoreContract, LeaseContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "results.db")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
class TestPostgresql(StoreContract, LeaseContract):
    @pytest.fixture
    def place(self, server: str) -> Iterator[str]:
        with new_schema(server) as url:
            yield url
