"""The list of studies: search, filters, order and pages, over ten thousand studies."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from autotune.errors import UsageError
from autotune.store import Store, StudyQuery
from tests.contract.store_samples import APP, key
from tests.refusals import refused
from tests.ui.conftest import Clients
from tests.ui.stores import HOST, TOKEN, generated, hash_of, searched, statuses

COUNT = 10_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "results.db"
    generated(path, COUNT)
    return path


def test_pages_of_ten_thousand_studies_have_every_study_once(many: Path) -> None:
    seen: list[int] = []
    with Store.open_read_only(many) as store:
        page = 1
        while True:
            found = store.study_page(StudyQuery(order="app", page=page, size=500))
            assert found.total == found.every == COUNT
            assert found.pages == COUNT // 500
            seen += [row.study.id for row in found.rows]
            names = [row.study.app for row in found.rows]
            assert names == sorted(names, reverse=True)
            if page == found.pages:
                break
            page += 1
        assert sorted(seen) == list(range(1, COUNT + 1))
        beyond = store.study_page(StudyQuery(page=10**6))
        assert (beyond.page, beyond.pages) == (200, 200)


def test_filters_are_counted_in_the_database(many: Path) -> None:
    with Store.open_read_only(many) as store:
        wanted = StudyQuery(app="program-3", machine="cpu1", status="recommended")
        found = store.study_page(wanted)
        fitting = [n for n in range(40, COUNT) if n % 40 == 13 and statuses(n) == "recommended"]
        assert found.total == len(fitting)
        assert {row.study.app for row in found.rows} == {"program-3"}
        assert {row.machine for row in found.rows} == {"cpu1"}
        assert store.study_page(StudyQuery(text="PROGRAM-3 cpu1 ga")).total == 0
        assert store.study_page(StudyQuery(text="PROGRAM-3 cpu1 auto")).total == COUNT // 40
        assert store.study_page(StudyQuery(text=hash_of(9999)[:12])).total == 1
        # A sign of LIKE stands for itself.
        assert store.study_page(StudyQuery(text="%")).total == 0
        assert store.study_choices()["app"] == [f"program-{n}" for n in range(10)]


def test_the_page_and_its_links(clients: Clients, many: Path) -> None:
    client = clients(many)
    first = client.get("/?strategy=ga&order=ranks&page=3").text
    assert "5000 of 10000 studies" in first
    assert "page 3 of 100" in first
    assert first.count('name="study"') == 50
    assert 'aria-sort="descending"' in first
    link = re.search(r'href="([^"]*)" rel="next"', first)
    assert link is not None
    following = client.get(f"http://{HOST}" + link[1].replace("&amp;", "&")).text
    assert "page 4 of 100" in following
    assert not set(_hashes(first)) & set(_hashes(following))
    assert "5000 of 10000" in following
    nothing = client.get("/?q=there-is-no-such-thing").text
    assert ">0 of 10000" in nothing
    assert _hashes(nothing) == []


def _hashes(text: str) -> list[str]:
    return re.findall(rf'href="/{TOKEN}/study/([0-9a-f]{{16}})"', text)


@pytest.mark.parametrize("query", ["page=0", "page=x", "page=-1", "page=99999999999", "order=key"])
def test_a_wrong_address_is_explained(client: TestClient, query: str) -> None:
    answer = client.get(f"/?{query}")
    assert answer.status_code == 404
    assert "expected" in answer.text


def test_queries_that_do_not_exist() -> None:
    with refused(UsageError, "usage.range"):
        StudyQuery(order="study.key; drop table run")
    with pytest.raises(UsageError, match="page"):
        StudyQuery(page=0)


def test_no_study_yet(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    Store.open(path).close()
    client = clients(path)
    assert "autotune search --app" in client.get("/").text  # data
    with Store.open(path) as store:  # Another process writes while the page is open.
        searched(store)
    assert "1 of 1 study" in client.get("/").text


def test_an_answer_that_nobody_verified_is_marked(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    plain = replace(APP, name="plain", verify=None)
    with Store.open(path) as store:
        for app in (APP, plain):
            study = store.study(key(app=app))
            store.set_result(study.id, "recommended", {"recommended": {"setting": {"a": 1}}})
    page = clients(path).get("/").text
    rows = {
        name: row for row in page.split("<tr>") for name in ("plain", "jacobi3d") if name in row
    }
    assert "unchecked" in rows["plain"]
    assert "unchecked" not in rows["jacobi3d"]


def test_a_damaged_row_is_named_below_the_page(clients: Clients, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("UPDATE run SET wall_s = 'odd' WHERE id = 2")
    client = clients(database)
    with Store.open_existing(database, tolerant=True) as store:
        study = next(iter(store.studies()))
        assert "[store.row_damaged]" not in client.get("/").text
        page = client.get(f"/study/{study.hash}")
    assert page.status_code == 200
    assert "[store.row_damaged]" in page.text
