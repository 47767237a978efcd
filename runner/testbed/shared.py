"""The page that the delay line and this side both map (``struct shared`` in native/testbed.h)."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_WORDS = struct.Struct("<8Q")
_SETTABLE = struct.Struct("<2Q")
FILE = "shared"


@dataclass(frozen=True)
class Counters:
    """What the delay line counted since its start (``late_max_ns``: the worst so far)."""

    latency_ns: int
    bytes_per_s: int
    packets: int
    bytes: int
    dropped: int
    late_sum_ns: int
    late_max_ns: int
    realtime: int


def create(directory: Path) -> Path:
    """An empty page."""
    path = directory / FILE
    path.write_bytes(bytes(mmap.PAGESIZE))
    return path


def read(directory: Path) -> Counters:
    """The counters now."""
    with (directory / FILE).open("rb") as file:
        return Counters(*_WORDS.unpack(file.read(_WORDS.size)))


def set_link(directory: Path, latency_s: float, rate_bps: int) -> None:
    """Latency each way and rate; in force for the next packet."""
    with (directory / FILE).open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        _SETTABLE.pack_into(page, 0, round(latency_s * 1e9), rate_bps // 8)
