"""Who may ask the page, by which name, and what a browser may do with the answer."""

from __future__ import annotations

import re
import secrets
import sqlite3
import urllib.request
from contextlib import closing
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from autotune.errors import UsageError
from autotune.store import Store
from autotune.store.schema import SCHEMA_VERSION
from autotune.ui.access import Access
from autotune.ui.app import PAGES, static_files
from autotune.ui.server import is_local, listen
from tests.case_table import case_table
from tests.contract.store_samples import key
from tests.refusals import refused
from tests.ui.conftest import Clients
from tests.ui.served import Listening, serving
from tests.ui.stores import HOST, HOSTILE, PORT, TOKEN, hostile


def test_nothing_without_the_token(clients: Clients, database: Path) -> None:
    client = clients(database)
    for wrong in ("", TOKEN[:-1], f"{TOKEN}x", "é", TOKEN.upper(), f"/{TOKEN}", f"x/{TOKEN}"):
        for path in (*PAGES, "/static/ui.css", "/none", f"/?token={TOKEN}"):
            answer = client.get(f"http://{HOST}/{wrong}{path}")
            assert answer.status_code == 403
            assert "jacobi3d" not in answer.text
    assert client.get(f"http://{HOST}/").status_code == 403
    assert client.get(f"http://{HOST}/{TOKEN}", follow_redirects=False).status_code == 303


def test_the_token_is_in_no_cookie(client: TestClient) -> None:
    """A browser sends a cookie to all ports of a host (RFC 6265, section 8.5)."""
    for path in (*PAGES, "/static/ui.css", "/none"):
        answer = client.get(path)
        assert "set-cookie" not in answer.headers, path
    assert not client.cookies


def test_a_server_on_another_port_gets_nothing_of_the_token(database: Path) -> None:
    """With a jar of cookies as a browser has it; ports make no difference to it."""
    jar = CookieJar()
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(jar)
    )
    with serving(database) as address, Listening() as other:
        with opener.open(address.url(TOKEN), timeout=60) as answer:
            assert answer.status == 200
        with opener.open(other.url, timeout=60) as answer:
            answer.read()
    assert other.requests
    assert not [seen for seen in other.requests if TOKEN in seen]


@pytest.mark.parametrize(
    "path", ["//evil.example/", "///evil.example", "/\\evil.example", f"//{TOKEN}"]
)
def test_nobody_is_sent_to_another_server(clients: Clients, database: Path, path: str) -> None:
    for address in (f"http://{HOST}{path}", f"http://{HOST}/{TOKEN}{path}"):
        answer = clients(database).get(address, follow_redirects=False)
        assert answer.status_code in (303, 307, 403, 404)
        place = answer.headers.get("location", "/")
        assert re.match(rf"(http://{HOST})?/(?![/\\])", place)


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(secrets, "compare_digest", compare)
    access = Access(lambda *_: None, TOKEN, (HOST,))  # type: ignore[arg-type,return-value]
    assert access._right(TOKEN)
    assert not access._right("x")
    assert len(compared) == 2


@case_table(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"{HOST}.x", ""]
)
def test_another_name_is_not_answered(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "jacobi3d" not in answer.text


def test_localhost_is_answered(clients: Clients, database: Path) -> None:
    client = clients(database)
    assert client.get(f"http://localhost:{PORT}/{TOKEN}/").status_code == 200


@case_table("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading(client: TestClient, method: str) -> None:
    for path in ("/", "/compare", "/static/ui.css"):
        answer = client.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"


def test_every_answer_has_the_policy(client: TestClient) -> None:
    for path, code in (("/", 200), ("/none", 404), ("/study/ffffffffffff", 404)):
        answer = client.get(path)
        assert answer.status_code == code
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in answer.headers


def pages_of(study: str) -> list[str]:
    """The address of every page, for a study."""
    filled = {"study": study[:16], "run": "1", "name": "none", "publication": "none"}
    return [path.format(**filled) for path in PAGES]


def test_no_inline_script_or_style(client: TestClient, database: Path) -> None:
    with Store.open(database) as store:
        study = store.studies()[0].hash
    for path in pages_of(study):
        text = client.get(path).text
        assert not re.search(rf"<script(?![^>]*\ssrc=\"/{TOKEN}/static/)", text), path
        assert not re.search(r"<style|\sstyle=|\son\w+=", text), path
        assert not re.search(r"(src|href)=\"(?!/|#|\?)", text), path


class Elements(HTMLParser):
    """The names of all elements and attributes of a page, as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_texts_of_the_database_are_escaped(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "hostile.db"
    with Store.open(path) as store:
        study = hostile(store)
    client = clients(path)
    shown = 0
    for page in [*pages_of(study), "/?q=%3Cscript%3E", "/?app=%3Cscript%3Ealert(1)"]:
        answer = client.get(page)
        text = answer.text
        if page.endswith(".json"):
            assert answer.headers["content-type"] == "application/json"
            continue
        assert "<script>alert" not in text, page
        seen = Elements()
        seen.feed(text)
        assert "img" not in seen.tags, page
        assert not [name for name in seen.attributes if name.startswith("on")], page
        assert ">49<" not in text, page
        shown += "&lt;script&gt;alert(1)" in text  # data
    assert shown >= 4  # The names are there, as text.
    assert HOSTILE not in client.get("/").text


@case_table(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..%2F..%2Fpyproject.toml",
        "/static/%2Fetc%2Fpasswd",
        "/study/..%2f..%2fetc%2fpasswd",
        "/study/%2fetc%2fpasswd/runs",
        "/dataset/..%2f..%2f..%2fetc",
        "/dataset/%2fetc",
        "/cluster/..%2f..%2fetc%2fpasswd",
        "/published/..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_name_in_an_address_becomes_a_path(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_the_database_is_never_written_created_or_migrated(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with refused(UsageError, "store.missing"):
        Store.open_read_only(path)
    assert list(tmp_path.iterdir()) == []
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(UsageError, match="empty"):
        Store.open_read_only(empty)
    assert empty.stat().st_size == 0
    with Store.open(path) as store:
        store.study(key())
    change = "UPDATE meta SET value = '{}' WHERE name = 'schema_version'"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(change.format(SCHEMA_VERSION - 1))
        with pytest.raises(UsageError) as caught:
            Store.open_read_only(path)
        assert caught.value.code == "store.version"
        found = raw.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
        assert found == (str(SCHEMA_VERSION - 1),)
        raw.execute(change.format(SCHEMA_VERSION))
    with Store.open_read_only(path) as store:
        assert len(store.studies()) == 1
        with pytest.raises(UsageError, match="readonly"):
            store.study(key(seed=2))


def test_addresses() -> None:
    assert all(is_local(host) for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"))
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""))
    one = listen("127.0.0.1", 0)
    try:
        assert f"localhost:{one.port}" in one.hosts
        assert one.url("x") == f"http://127.0.0.1:{one.port}/x/"
        with pytest.raises(UsageError, match=r"--port"):
            listen("127.0.0.1", one.port)
    finally:
        one.listening.close()
    with refused(UsageError, "ui.host"):
        listen("no.such.host.invalid", 0)


def test_the_files_that_pages_load_are_in_the_package() -> None:
    found = static_files()
    assert {"ui.css", "ui.js", "sections.css", "copy.js", "icon.svg"} == set(found)
    assert "http" not in found["ui.js"].replace("http://www.w3.org", "")
