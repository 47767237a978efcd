"""How work is divided, and who steals: a checked configuration, and its command-line switches."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from runner.runtimes.intranode import switches
from runner.runtimes.intranode.errors import ConfigError
from runner.runtimes.intranode.published import TunedLibrary
from runner.runtimes.intranode.switches import OFF, ON, WAITS

STRATEGIES = ("localized", "mixed", "throughput")
ACCESSES = ("random", "lo-to-hi", "hi-to-lo")
_BYTES, _CHUNK = (0, 1 << 40), (64, 1 << 30)
_CHUNK_OF = 64
"""Chunks are a multiple of this."""

SWITCHES: switches.Table = {
    "steal": ("steal", (ON, OFF), "whether messages are cut, and others are helped"),
    "steal-strategy": ("strategy", STRATEGIES, "from whom a waiting rank steals"),
    "saturation": ("saturation", (1, 4096), "ranks that saturate the memory of a domain"),
    "steal-threshold": ("threshold", _BYTES, "bytes from which a message is cut"),
    "medium-from": ("medium_from", _BYTES, "bytes from which a message is medium"),
    "large-from": ("large_from", _BYTES, "bytes from which a message is large"),
    "chunk-small": ("chunk_small", _CHUNK, "bytes of a chunk of a small message"),
    "chunk-medium": ("chunk_medium", _CHUNK, "bytes of a chunk of a medium message"),
    "chunk-large": ("chunk_large", _CHUNK, "bytes of a chunk of a large message"),
    "access": ("access", ACCESSES, "how a message is read afterwards"),
    "bundle": ("bundle", (ON, OFF), "pack and unpack a chunk as one task"),
    "stealers": ("stealers", (-1, 4096), "ranks that may work for one rank at once; -1: all"),
    "domains": ("domains", (0, 1024), "memory domains to assume; 0: those of the machine"),
    "waiting": ("waiting", WAITS, "what a rank does that finds nothing"),
    "spins": ("spins", (0, 1 << 30), "looks before a waiting rank yields its core"),
    "steal-seed": ("seed", (0, 1 << 30), "seed of the choice whom to steal from"),
}
"""Switch -> its field, values or bounds, and meaning."""


@dataclass(frozen=True)
class Config:
    """The configuration of a rank; raises :class:`ConfigError` for an impossible one.

    ``strategy``: a waiting rank steals from ranks of its memory domain (localized), also from other
    domains (mixed), or from those only while fewer than ``saturation`` ranks use the memory there
    (throughput). ``chunk_small``, ``chunk_medium``, ``chunk_large``: bytes of a chunk of messages
    below ``medium_from``, below ``large_from``, and of the others. ``access``: ``lo-to-hi`` copies
    the beginning last. ``waiting``: spin, or yield after ``spins`` looks; ``auto`` yields if the
    node has more ranks than cores. :data:`SWITCHES` explains the others.
    """

    steal: bool = True
    strategy: str = "throughput"
    saturation: int = 4
    threshold: int = 65536
    medium_from: int = 98304
    large_from: int = 524288
    chunk_small: int = 16384
    chunk_medium: int = 32768
    chunk_large: int = 65536
    access: str = "random"
    bundle: bool = True
    stealers: int = -1
    domains: int = 0
    waiting: str = "auto"
    spins: int = 200
    seed: int = 1

    def __post_init__(self) -> None:
        switches.check(SWITCHES, self)
        for switch, (field, choices, _) in SWITCHES.items():
            if choices is _CHUNK and getattr(self, field) % _CHUNK_OF:
                raise ConfigError(
                    f"--{switch} {getattr(self, field)}: expected a multiple of {_CHUNK_OF}",
                    code="intranode.option",
                )
        if self.medium_from > self.large_from:
            raise ConfigError(
                f"--medium-from {self.medium_from} is above --large-from {self.large_from}: "
                "expected that medium messages are smaller than large ones",
                code="intranode.option",
            )

    def chunk(self, size: int) -> int:
        """Bytes of a chunk of a message of ``size`` bytes; all of it if it is not divided."""
        chunk = self.chunk_small
        if size >= self.large_from:
            chunk = self.chunk_large
        elif size >= self.medium_from:
            chunk = self.chunk_medium
        return size if size < self.threshold or size <= chunk or not self.steal else chunk


CAB = TunedLibrary("cab", Config, SWITCHES, "steal-config")
"""Its published configuration, and its command line."""


def add_arguments(parser: argparse.ArgumentParser, mate: bool = False) -> None:
    """Add the library's switches in a separate group; a missing one is None.

    ``mate``: the parser has the switches of :mod:`runner.runtimes.mate`, whose ``--steal`` accepts
    on and off, too.
    """
    group = parser.add_argument_group("stealing of chunks", "--steal on or off, and:" * mate)
    CAB.add_arguments(group, leave="steal" if mate else "")
