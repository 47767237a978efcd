"""The server of the page: an address on this machine, a token, and uvicorn behind it."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn

from autotune.errors import UsageError, WorkError
from autotune.store import Store
from autotune.ui.access import new_token
from autotune.ui.app import build
from autotune.ui.connection import BoundedConnection

HOST = "127.0.0.1"
_BACKLOG = 64
"""Connections that wait to be accepted."""
_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Address:
    """A listening socket, with the names by which a browser may request it."""

    listening: socket.socket
    host: str
    port: int

    @property
    def hosts(self) -> frozenset[str]:
        """The values of the Host header that are answered."""
        names = {self.host}
        if is_local(self.host):
            names |= {"localhost", "127.0.0.1", "::1"}
        elif self.host in _EVERYWHERE:
            names |= {socket.gethostname(), socket.getfqdn(), "localhost", "127.0.0.1"}
            names |= {str(entry[4][0]) for entry in _addresses(socket.gethostname())}
        host_names = {f"[{name}]" if ":" in name else name.lower() for name in names}
        # A browser leaves the port out if it is the usual one.
        return frozenset(f"{n}:{self.port}" for n in host_names) | (
            host_names if self.port == 80 else set()
        )

    def url(self, token: str) -> str:
        """The address to open, with the secret."""
        name = socket.gethostname() if self.host in _EVERYWHERE else self.host
        host = f"[{name}]" if ":" in name else name
        return f"http://{host}:{self.port}/{token}/"


def is_local(host: str) -> bool:
    """True if only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listen(host: str, port: int) -> Address:
    """A socket on ``host``; ``port`` 0 takes a free one.

    Raises UsageError for a host that is not of this machine and for a port that is taken.
    """
    addresses = _addresses(host)
    if not addresses:
        raise UsageError(
            f"--host {host!r} is no address of this machine; expected {HOST}", code="ui.host"
        )
    family, kind, protocol, _, place = addresses[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((place[0], port, *place[2:]))
        listening.listen(_BACKLOG)
    except OSError as problem:
        listening.close()
        raise UsageError(
            f"cannot listen on {host}, port {port}: {problem.strerror}; choose another port with "
            "--port N (0: a free one)",
            code="ui.port",
        ) from None
    return Address(listening, host, int(listening.getsockname()[1]))


def _addresses(host: str) -> Sequence[tuple[Any, ...]]:
    try:
        return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []


def server_of(store: Store, address: Address, token: str) -> uvicorn.Server:
    """The server of the page at an address."""
    app = build(store, token, address.hosts)
    # No log of requests: it would contain the token. Nor may mere connections fill the log.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        backlog=_BACKLOG,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def serve(store: Store, address: Address, ready: Callable[[str], None]) -> None:
    """Answer requests until the process is interrupted; ``ready`` receives the address to open.

    Raises WorkError if the server cannot start.
    """
    token = new_token()
    server = server_of(store, address, token)
    ready(address.url(token))
    try:
        server.run(sockets=[address.listening])
    finally:
        address.listening.close()
    if not server.started:
        raise WorkError(f"the server on port {address.port} did not start", code="ui.port")
