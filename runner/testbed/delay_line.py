"""The delay line: its compiled program, the kernel's rate limit, and the page of shared counters.

The program is compiled on first use into the user's cache.

The rate limit is a token bucket of the kernel on each node's device, so that senders notice a full
link. The delay line also limits the rate, but it cannot stop a sender, because the kernel drops
packets for a full TUN device. So all bytes in TCP's window would wait in its queue, with short
messages behind them. With a token bucket in front, TCP holds the rest back.

The shared page (``struct shared`` in native/testbed.h) is mapped by the delay line and by this
process.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from runner import files
from runner.errors import RunnerError
from runner.files.private_files import PROGRAM, has_private, private_folder, write_private
from runner.testbed.model import Node

FLAGS = ("-O2", "-std=gnu11")


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/autotune/testbed``, or below ``~/.cache``."""
    return files.cache("testbed")


def delay_line_program() -> Path:
    """Path of the program, which is compiled if missing.

    Raises RunnerError if it cannot be compiled or stored, or if others could change it.
    """
    sources = _sources()
    place = cache_dir() / f"testbed-{_digest(sources)}"
    try:
        private_folder(place.parent)
        if has_private(place) and os.access(place, os.X_OK):
            return place
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            _compile(sources, Path(work))
            # Two concurrent builders produce the same program; the later one replaces it
            # completely.
            (Path(work) / "program").chmod(PROGRAM)
            (Path(work) / "program").replace(place)
    except OSError as error:
        raise RunnerError(
            f"the testbed's program cannot be stored in {place.parent}: {error.strerror}; "
            "expected a directory that can be written (XDG_CACHE_HOME sets another)",
            code="testbed.unwritable",
        ) from None
    return place


def _sources() -> dict[str, str]:
    native = resources.files("runner.testbed") / "native"
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(native.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith((".c", ".h"))
    }


def _digest(sources: dict[str, str]) -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for name, text in sources.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:16]


def _compile(sources: dict[str, str], work: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise RunnerError(
            "no C compiler (cc) on PATH: the testbed's program cannot be compiled",
            code="compiler.testbed",
        )
    for name, text in sources.items():
        (work / name).write_text(text, encoding="utf-8")
    files = [name for name in sources if name.endswith(".c")]
    process = subprocess.run(
        [compiler, *FLAGS, "-o", "program", *files],
        cwd=work,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
    )
    if process.returncode:
        raise RunnerError(
            f"{compiler} cannot compile the testbed's program:\n{process.stderr.strip()[:2000]}",
            code="compiler.testbed",
        )


def shape(nodes: tuple[Node, ...], rate_bps: int, mtu: int) -> bool:
    """Put a token bucket on every node's device; False if this kernel or ``tc`` lacks it."""
    tool = shutil.which("tc")
    if tool is None:
        return False
    return all(_shape_one(tool, node, rate_bps, mtu) for node in nodes)


def _shape_one(tool: str, node: Node, rate_bps: int, mtu: int) -> bool:
    # A bucket must hold the largest packet. TCP keeps its queue in front of the bucket short by
    # itself; the limit is far above that length, because packets over it are lost.
    bucket = max(2 * mtu, rate_bps // 8 // 1000)
    limit = max(64 * mtu, rate_bps // 8 // 10)
    arguments = ["dev", "net0", "root", "tbf", "rate", f"{rate_bps}bit"]
    arguments += ["burst", str(bucket), "limit", str(limit)]
    process = subprocess.run(
        ["nsenter", "-t", str(node.process.pid), "-n", tool, "qdisc", "replace", *arguments],
        capture_output=True,
        timeout=20,
        check=False,
    )
    return process.returncode == 0


_WORDS = struct.Struct("<11Q")
_SETTABLE = struct.Struct("<2Q")
_MOST = 9
"""Place of ``flying_max`` among the words."""
FILE = "shared"


@dataclass(frozen=True)
class Counters:
    """Counters of the delay line since its start; ``late_max_ns`` is the largest delay so far.

    ``flying``: bytes in flight now; ``flying_max``: the largest number since :func:`forget_most`;
    ``flying_byte_ns``: the sum over delivered packets of bytes times ns in flight, so its growth
    rate is the mean number of bytes in flight.
    """

    latency_ns: int
    bytes_per_s: int
    packets: int
    bytes: int
    drops: int
    late_sum_ns: int
    late_max_ns: int
    realtime: int
    flying: int
    flying_max: int
    flying_byte_ns: int


def create_shared_page(directory: Path) -> Path:
    """Create an empty page."""
    path = directory / FILE
    write_private(path, bytes(mmap.PAGESIZE))
    return path


def read_counters(directory: Path) -> Counters:
    """The present counters."""
    with (directory / FILE).open("rb") as file:
        return Counters(*_WORDS.unpack(file.read(_WORDS.size)))


def set_link(directory: Path, latency_s: float, rate_bps: int) -> None:
    """Set the latency each way and the rate; they apply from the next packet on."""
    with (directory / FILE).open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        _SETTABLE.pack_into(page, 0, round(latency_s * 1e9), rate_bps // 8)


def forget_most(directory: Path) -> None:
    """Restart counting the largest number of bytes in flight."""
    with (directory / FILE).open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        struct.pack_into("<Q", page, 8 * _MOST, 0)
