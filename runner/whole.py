"""Files that are written whole or not at all: a reader never meets a half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(path: Path, mode: int | None = None) -> Iterator[Path]:
    """An empty file beside ``path`` to write into; it takes the place of ``path`` at the end.

    Where the block raises, nothing has changed and the new file is gone.  ``mode`` are permission
    bits; None: as the umask gives.  Raises OSError where the place cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(_usual() if mode is None else mode)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file by ``text`` in one step, as :func:`whole`; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path, mode) as part:
        part.write_text(text, encoding="utf-8")


def _usual() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
