"""Messages on a stream socket: four bytes of length, then JSON."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one message; raises ``OSError`` if the other end is gone."""
    data = json.dumps(message).encode("ascii")
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """The next message, or None when the other end is gone."""
    head = _exactly(sock, _LENGTH.size)
    if head is None:
        return None
    data = _exactly(sock, _LENGTH.unpack(head)[0])
    if data is None:
        return None
    message: dict[str, Any] = json.loads(data)
    return message


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = sock.recv(size - len(parts))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
