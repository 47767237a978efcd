"""Files from outside: read only where they are regular and not too large.

A fifo would keep the reader waiting, a device may give bytes for ever, and a sparse file is larger
than the memory for nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a directory",
}
MIB = 1 << 20


def open_regular(
    path: Path | str, most: int, *, follow: bool = True, dir_fd: int | None = None
) -> BinaryIO:
    """An open regular file of at most ``most`` bytes, at its beginning.

    ``follow``: a link is followed; ``dir_fd``: the folder that ``path`` is relative to.  Raises
    OSError, whose ``strerror`` says what is wrong.
    """
    # Looked at first: opening a device may already do something.
    _refuse(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow), path, most)
    fd = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        _refuse(os.fstat(fd), path, most)  # It may be another file by now.
        return open(fd, "rb")  # noqa: PTH123 (a descriptor)
    except BaseException:
        os.close(fd)
        raise


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes; raises OSError as
    :func:`open_regular`, also where it grows meanwhile."""
    with open_regular(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def read_text(path: Path, most: int) -> str:
    """The same as UTF-8 text; raises UnicodeDecodeError where it is none."""
    text = read_bytes(path, most).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse(found: os.stat_result, path: Path | str, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}; expected a regular file", str(path))
    if found.st_size > most:
        raise _too_large(path, most)


def _too_large(path: Path | str, most: int) -> OSError:
    size = f"{most / MIB:g} MiB" if most >= MIB else f"{most} bytes"
    return OSError(errno.EFBIG, f"it is larger than {size}, the limit for such a file", str(path))
