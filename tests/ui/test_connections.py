"""Many connections, and such that say nothing: the page stays reachable and the log is quiet."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from autotune.ui.connection import REQUEST_S, most_connections
from tests.ui.served import serving
from tests.ui.stores import TOKEN

FEW_FILES = 200
FLOOD = 400
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
TOLD = re.compile(r"http://127\.0\.0\.1:\d+/\S+/")


@contextlib.contextmanager
def half_requests(port: int, number: int) -> Iterator[list[socket.socket]]:
    """So many connections that never end their request."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(number):
            try:
                one = socket.create_connection(("127.0.0.1", port), timeout=10)
                stack.enter_context(one)
                one.sendall(HALF)
                found.append(one)
            except OSError:
                continue
        yield found


def fetched(url: str) -> int:
    """The status of the page, as a new connection gets it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as answer:
        return int(answer.status)


def test_a_flood_of_half_requests_neither_stops_the_page_nor_fills_the_log(
    tmp_path: Path, database: Path
) -> None:
    """As a user of the machine without the token can do it; the process may open few files."""
    log = tmp_path / "log"
    words = f"ulimit -n {FEW_FILES}; exec {sys.executable} -P -m autotune ui --port 0"
    with log.open("wb") as file:
        server = subprocess.Popen(
            ["bash", "-c", f"{words} --store {database}"], stdout=file, stderr=file
        )
    try:
        url = told_in(log)
        with half_requests(int(urlsplit(url).port or 0), FLOOD):
            for _ in range(3):
                assert fetched(url) == 200
            time.sleep(1)
            assert fetched(url) == 200
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(30)
    assert log.stat().st_size < 4096
    assert "Traceback" not in log.read_text()


def told_in(log: Path) -> str:
    until = time.monotonic() + 60
    while (found := TOLD.search(log.read_text())) is None:
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    return found[0]


def test_a_half_request_is_closed_in_time(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.ui.connection.REQUEST_S", 0.5)
    with serving(database) as address, half_requests(address.port, 1) as [one]:
        one.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(100) == b""
    assert REQUEST_S >= 1


def test_a_request_that_is_answered_is_not_driven_out(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of those that wait goes, also if a connection has had an answer before."""
    monkeypatch.setattr("autotune.ui.connection._MOST", 4)
    assert most_connections() == 4
    with serving(database) as address:
        url = address.url(TOKEN)
        with half_requests(address.port, 12):
            assert [fetched(url) for _ in range(8)] == [200] * 8


def test_an_upgrade_is_no_line_in_the_log(
    database: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(database) as address:
        with socket.create_connection(("127.0.0.1", address.port), timeout=30) as one:
            lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{address.port}", "Upgrade: websocket"]
            lines += ["Connection: Upgrade", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13"]
            one.sendall("\r\n".join([*lines, "", ""]).encode())
            assert b" 403 " in one.recv(4096).split(b"\r\n")[0]
        with socket.create_connection(("127.0.0.1", address.port), timeout=30) as one:
            one.sendall(b"\x16\x03\x01 no request\r\n\r\n")
            one.recv(4096)
    assert capfd.readouterr().err == ""
