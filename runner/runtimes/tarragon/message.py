"""Messages: an envelope and a payload that edges carry (Cicotti 2011, 3.4 and Appendix B).

A message to a task of the same process is passed by reference. One to another process is sent in
place: its bytes have room for the envelope in front, so nothing is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

HEADER = np.dtype(
    [
        ("source", "<i8"),
        ("target", "<i8"),
        ("key", "<i8"),
        ("weight", "<i8"),
        ("size", "<i8"),
        ("targets", "<i8"),
        ("number", "<i8"),
        ("wrapped", "<i8"),
    ]
)
"""The envelope of a message between processes. ``targets``: number of further targets after the
payload, all on the same process (tagged edges). ``number``: its number among its sender's messages,
set by the transport. ``wrapped``: True if the payload is a serialized object."""
ROOM = HEADER.itemsize
"""Bytes in front of the payload, a cache line."""


class Message:
    """A payload of bytes with its envelope.

    ``key`` is the user's own, such as an iteration number or a kind of message. ``weight`` is for
    firing rules to count. After ``put`` it belongs to its receiver.
    """

    __slots__ = ("_bytes", "content", "foreign", "key", "source", "weight")

    def __init__(self, size: int = 0, key: int = 0, weight: int = 1) -> None:
        self._bytes = np.empty(ROOM + size, np.uint8)
        self.key = key
        self.weight = weight
        self.source = -1
        """The task that sent it."""
        self.content: Any = None
        """For messages of :meth:`wrapping`: the object, or the result of ``vcreate`` for its
        bytes."""
        self.foreign = False
        """True if the payload is an object that another process serialized."""

    @classmethod
    def of(cls, array: NDArray[Any], key: int = 0, weight: int = 1) -> Message:
        """A message with a copy of an array (``BufferedMessage``)."""
        message = cls(array.nbytes, key, weight)
        message.array(array.dtype)[:] = array.reshape(-1)
        return message

    @classmethod
    def wrapping(cls, content: Any, key: int = 0, weight: int = 1) -> Message:
        """A message that passes an object by reference within a process; ``content`` has a method
        ``serialize() -> array`` for other processes (``WrappedMessage``)."""
        message = cls(0, key, weight)
        message.content = content
        return message

    def copy(self) -> Message:
        """A separate message with the same payload."""
        message = Message.__new__(Message)
        message._bytes = self._bytes.copy()
        message.key, message.weight, message.source = self.key, self.weight, self.source
        message.content, message.foreign = self.content, self.foreign
        return message

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(self._bytes) - ROOM

    def array(self, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """The payload as a flat array; not a copy."""
        return self._bytes[ROOM:].view(dtype)


def pack(message: Message, targets: list[int], needs_copy: bool) -> NDArray[np.uint8]:
    """The bytes for another process, with one target or several.

    Raises AttributeError for a wrapped object that cannot be serialized.
    """
    is_wrapper = message.content is not None
    if is_wrapper:
        inner = Message.of(np.ascontiguousarray(message.content.serialize()))
        data = inner._bytes
    else:
        data = message._bytes
    size = len(data) - ROOM
    if needs_copy or len(targets) > 1:
        # The following data start at a whole word.
        gap = np.zeros(-len(data) % 8, np.uint8)
        further = np.array(targets[1:], np.int64).view(np.uint8)
        data = np.concatenate([data, gap, further])
    head = data[:ROOM].view(HEADER)[0]
    head["wrapped"] = int(is_wrapper)
    head["source"], head["target"] = message.source, targets[0]
    head["key"], head["weight"] = message.key, message.weight
    head["size"], head["targets"] = size, len(targets) - 1
    return data


def unpack(data: NDArray[np.uint8]) -> tuple[Message, list[int], int]:
    """The message at the beginning of received bytes, its targets, and the bytes that it took.

    The payload is a view of ``data``: from now on the message owns it.
    """
    head = data[:ROOM].view(HEADER)[0]
    size, further = int(head["size"]), int(head["targets"])
    end = ROOM + size
    message = Message.__new__(Message)
    message._bytes = data[:end]
    message.content = None
    message.foreign = bool(head["wrapped"])
    message.key, message.weight = int(head["key"]), int(head["weight"])
    message.source = int(head["source"])
    words = -(-end // 8) * 8
    length = words + 8 * further
    targets = [int(head["target"]), *data[words:length].view(np.int64).tolist()]
    return message, targets, length
