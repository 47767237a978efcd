"""A client that knows the token, over a small results database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from autotune.store import Store
from autotune.ui.app import build
from tests.ui.stores import HOST, PORT, TOKEN, searched

Clients = Callable[[Path], TestClient]


@pytest.fixture
def clients() -> Iterator[Clients]:
    """Opens a database read-only, as the command does; the client's addresses have the token."""
    with ExitStack() as stack:

        def client(path: Path) -> TestClient:
            store = stack.enter_context(Store.open_read_only(path))
            app = build(store, TOKEN, {HOST, f"localhost:{PORT}"})
            return stack.enter_context(TestClient(app, base_url=f"http://{HOST}/{TOKEN}"))

        yield client


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with one search."""
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        searched(store)
    return path


@pytest.fixture
def client(clients: Clients, database: Path) -> TestClient:
    """A client of it that knows the token."""
    return clients(database)
