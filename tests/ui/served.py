"""The page behind a real port, and another server on this machine that writes down all it gets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from autotune.store import Store
from autotune.ui.server import Address, listen, server_of
from tests.ui.stores import TOKEN


@contextlib.contextmanager
def serving(database: Path) -> Iterator[Address]:
    """The page over a database, as ``autotune ui`` serves it, in a thread; its address."""
    store, address = Store.open_read_only(database), listen("127.0.0.1", 0)
    server = server_of(store, address, TOKEN)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.listening]})
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
        address.listening.close()
        store.close()


class Listening:
    """Somebody else's server on another port: it keeps the words of every request."""

    def __init__(self, page: str = "nothing here") -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._page = page.encode()
        self.requests: list[str] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self) -> Listening:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _answer(self) -> None:
        while True:
            try:
                asked, _ = self._socket.accept()
            except OSError:
                return
            with asked:
                asked.settimeout(10)
                with contextlib.suppress(OSError):
                    words = b""
                    while b"\r\n\r\n" not in words and (part := asked.recv(65536)):
                        words += part
                    self.requests.append(words.decode("latin-1"))
                    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
                    head += f"Content-Length: {len(self._page)}\r\n\r\n"
                    asked.sendall(head.encode() + self._page)
