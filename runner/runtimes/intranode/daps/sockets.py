"""Connections between ranks of different nodes, and their descriptors in all ranks of a node.

Each rank has one TCP connection to each rank of other nodes. A rank listens until all peers have
connected with its random key (sent through MPI); it answers with theirs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import os
import resource
import secrets
import socket
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from runner.runtimes.intranode.errors import IntranodeError

KEY = 32
"""Bytes of a key."""
_HELLO = struct.Struct(f"={KEY}sq")
"""The greeting of a connecting rank: the listener's key, and its own rank."""
_RANK = struct.Struct("=i")
"""The sender's number on the node, sent with its descriptors."""
_WITHIN_S, _ANSWER_S = 60.0, 5.0
"""Time limits in seconds for all connections, and for a greeting."""
_GET_ADDRESS = 0x8915
"""Linux's request for the IPv4 address of an interface."""
_PER_MESSAGE = 200
"""Descriptors sent with one message; the system allows at most 253."""


@dataclass(frozen=True)
class Place:
    """The address at which a rank listens.

    ``host``: the machine and its network namespace; ranks with the same one connect by loopback,
    others by one of ``addresses``.
    """

    host: str
    addresses: tuple[str, ...]
    port: int
    key: bytes


def this_host() -> str:
    """This machine since boot, and the network namespace of this process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def own_addresses() -> tuple[str, ...]:
    """The IPv4 addresses of this process's network interfaces, without loopback."""
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)
                addresses.append(socket.inet_ntoa(answer[20:24]))
    return tuple(address for address in addresses if not address.startswith("127."))


class Listener:
    """Accepts the expected ranks, each once, if they know the key.

    ``keys``: those of the expected ranks, sent to them as the answer.
    """

    def __init__(self, is_one_host: bool) -> None:
        """``is_one_host``: only this host connects, so the network cannot reach the socket."""
        self.key = secrets.token_bytes(KEY)
        self.peers: dict[int, socket.socket] = {}
        self.refusals = 0
        """Number of connections without the key, or from unexpected ranks."""
        self._socket = socket.create_server(
            ("127.0.0.1" if is_one_host else "", 0), backlog=socket.SOMAXCONN
        )
        self.port: int = self._socket.getsockname()[1]

    def accept(self, keys: Mapping[int, bytes], within_s: float = _WITHIN_S) -> None:
        """Wait at most ``within_s`` seconds until all have connected."""
        until = monotonic() + within_s
        while len(self.peers) < len(keys) and (left := until - monotonic()) > 0:
            self._socket.settimeout(left)
            with contextlib.suppress(OSError):
                connection, _ = self._socket.accept()
                if not self._greet(connection, keys):
                    self.refusals += 1
                    connection.close()

    def _greet(self, connection: socket.socket, keys: Mapping[int, bytes]) -> bool:
        connection.settimeout(_ANSWER_S)
        key, rank = _HELLO.unpack(_exactly(connection, _HELLO.size))
        if not hmac.compare_digest(key, self.key) or rank in self.peers or rank not in keys:
            return False
        connection.sendall(keys[rank])
        self.peers[rank] = connection
        return True

    def close(self) -> None:
        """Stop listening; connections stay."""
        self._socket.close()


def _exactly(connection: socket.socket, size: int) -> bytes:
    """``size`` bytes, or that number of zeros if the peer sends fewer."""
    data = b""
    with contextlib.suppress(OSError):
        while len(data) < size and (part := connection.recv(size - len(data))):
            data += part
    return data if len(data) == size else bytes(size)


def connect(place: Place, host: str, rank: int, key: bytes) -> socket.socket | None:
    """A connection to the listener there, as this rank with this key; None if it fails."""
    addresses = ("127.0.0.1",) if place.host == host else place.addresses
    for address in addresses:
        with contextlib.suppress(OSError):
            connection = socket.create_connection((address, place.port), _ANSWER_S)
            connection.settimeout(_WITHIN_S)
            connection.sendall(_HELLO.pack(place.key, rank))
            if hmac.compare_digest(_exactly(connection, KEY), key):
                return connection
            connection.close()
    return None


def join(comm: Any, nodes: Sequence[int]) -> dict[int, socket.socket]:
    """Connections of this rank to all ranks of other nodes; ``nodes``: that of each rank.

    Collective. Raises :class:`IntranodeError` in all ranks if one lacks a connection.
    """
    rank: int = comm.rank
    remotes = [other for other, node in enumerate(nodes) if node != nodes[rank]]
    host = this_host()
    is_one_host = len(set(comm.allgather(host))) == 1
    listener = Listener(is_one_host)
    places: list[Place] = comm.allgather(Place(host, own_addresses(), listener.port, listener.key))
    keys = {other: places[other].key for other in remotes if other < rank}
    thread = threading.Thread(target=listener.accept, args=(keys,))
    thread.start()
    outgoing: dict[int, socket.socket | None] = {
        other: connect(places[other], host, rank, listener.key) for other in remotes if other > rank
    }
    thread.join()
    listener.close()
    links = {other: one for other, one in (outgoing | listener.peers).items() if one is not None}
    for connection in links.values():
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
    missing = [str(other) for other in remotes if other not in links]
    agree(comm, f"rank {rank} has no connection to rank {', '.join(missing)}" * bool(missing))
    return {other: links[other] for other in remotes}


def share(comm: Any, node: Any, own: Sequence[int]) -> list[list[int]]:
    """The descriptors ``own`` of each rank of the node, usable in this process.

    Collective; all ranks of a node pass the same number. Those of other ranks are new descriptors
    of the same sockets. Raises :class:`IntranodeError` in all ranks of ``comm``.
    """
    descriptors = [list(own) if number == node.rank else list[int]() for number in range(node.size)]
    problem = _make_room(node.size * len(own))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0daps-{secrets.token_hex(16)}")
        listener.listen(node.size)
        names = node.allgather(listener.getsockname())
        listener.settimeout(_WITHIN_S)
        if not any(comm.allgather(problem)) and own:
            try:
                _give(names, node.rank, own)
                _take(listener, descriptors)
            except OSError as error:
                problem = f"rank {comm.rank} cannot share its connections: {error.strerror}"
    agree(comm, problem)
    return descriptors


def _give(names: Sequence[bytes], rank: int, own: Sequence[int]) -> None:
    for number, name in enumerate(names):
        if number != rank:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(name)
                for at in range(0, len(own), _PER_MESSAGE):
                    part = own[at : at + _PER_MESSAGE]
                    socket.send_fds(connection, [_RANK.pack(rank)], part)


def _take(listener: socket.socket, rows: list[list[int]]) -> None:
    count = max(map(len, rows))
    while any(len(one) < count for one in rows):
        connection, _ = listener.accept()
        with connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("=iII", credentials)[1] != os.getuid():
                continue
            while True:
                text, descriptors, _, _ = socket.recv_fds(connection, _RANK.size, _PER_MESSAGE)
                if len(text) < _RANK.size:
                    break
                for descriptor in descriptors:
                    os.set_inheritable(descriptor, False)
                rows[_RANK.unpack(text)[0]] += descriptors


def _make_room(count: int) -> str:
    """Let this process open this many more files; returns the problem as text."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = count + 256
    if hard != resource.RLIM_INFINITY and hard < need:
        return f"the node's connections need {need} open files, and ulimit -Hn is {hard}: raise it"
    if soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
    return ""


def shut_down(descriptors: Iterable[int]) -> None:
    """Close these connections for all processes that have them."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            one = socket.socket(fileno=descriptor)
            try:
                one.shutdown(socket.SHUT_RDWR)
            finally:
                one.detach()


def agree(comm: Any, problem: str, kind: type[IntranodeError] = IntranodeError) -> None:
    """Raise an error in all ranks if one of them has a problem; collective."""
    if first_problem := next(filter(None, comm.allgather(problem)), ""):
        raise kind(first_problem, code="intranode.ranks_differ")
