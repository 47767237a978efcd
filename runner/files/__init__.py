"""Reading and writing files: regular, complete, and in their proper places.

Reading: a file from outside is read only if it is regular and not too large. A fifo would block the
reader, a device may never end, and a sparse file can exceed the memory. A file named by the user
may be a pipe or a device; it is read up to a limit.

Writing: a file is written completely or not at all, so that a reader never sees half a file.

Places: files of this user go where the XDG base directory specification says. As specified there, a
variable with a relative path is ignored.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from runner.files.paths import real_path

FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""Opening a fifo does not block, and a terminal does not become this process's own."""
_KINDS = {
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a directory",
}
MIB = 1 << 20
_ANY_SIZE = 1 << 63


def open_regular(
    path: Path | str, most: int, *, follow: bool = True, dir_fd: int | None = None
) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes, positioned at its beginning.

    ``follow``: links are followed. ``dir_fd``: descriptor of the folder that ``path`` is relative
    to. Raises OSError; its ``strerror`` says what is wrong.
    """
    # Checked before opening: opening a device may already have an effect.
    _refuse(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow), path, most)
    fd = os.open(path, FLAGS | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        _refuse(os.fstat(fd), path, most)  # The path may name another file by now.
        return open(fd, "rb")  # noqa: PTH123 (a descriptor)
    except BaseException:
        os.close(fd)
        raise


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes.

    Raises OSError as :func:`open_regular` does, also if the file grows beyond ``most`` meanwhile.
    """
    with open_regular(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def read_text(path: Path, most: int) -> str:
    """The content as UTF-8 text; raises as :func:`read_bytes`, and UnicodeDecodeError if it is not
    text.
    """
    text = read_bytes(path, most).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_user_file(path: Path | str, most: int) -> str:
    """The UTF-8 text of a file, pipe or device named by a user: at most ``most`` bytes.

    Raises OSError, with EFBIG if there is more, and UnicodeDecodeError if it is not text.
    """
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_tail(path: Path, most: int) -> str:
    """The last ``most`` bytes of a regular file of any size as text; raises OSError."""
    with open_regular(path, sys.maxsize) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode("utf-8", "replace")


def _refuse(state: os.stat_result, path: Path | str, most: int) -> None:
    if not stat.S_ISREG(state.st_mode):
        kind = _KINDS.get(stat.S_IFMT(state.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}; expected a regular file", str(path))
    if state.st_size > most:
        raise _too_large(path, most)


def _too_large(path: Path | str, most: int) -> OSError:
    size = f"{most / MIB:g} MiB" if most >= MIB else f"{most} bytes"
    return OSError(errno.EFBIG, f"it is larger than {size}, the limit for such a file", str(path))


@contextlib.contextmanager
def atomic_file(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A new file beside ``path``, open for writing; at the end of the block it replaces ``path``.

    Its ``name`` is its path. If the block raises, ``path`` is unchanged and the new file is
    removed. ``mode`` are permission bits; None: as the umask says. A device, a fifo or an open file
    of a process (``/dev/stdout``) cannot be replaced and is written directly. Raises OSError if
    ``path`` is not writable.
    """
    if not _is_replaceable(path):
        with path.open("ab") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")
    with open(str(part), "xb", opener=_new) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _usual() if mode is None else mode)
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise


def _is_replaceable(path: Path) -> bool:
    """True if another file may replace this one: it is regular, a folder, or does not exist."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return True  # Nothing exists there, or writing the file will raise the error.
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return False
    return not (path.is_symlink() and str(path.absolute()).startswith(("/dev/", "/proc/")))


def _new(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_atomically(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file by ``text`` in one step, as :func:`atomic_file` does.

    The folder is created if missing. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, mode) as file:
        file.write(text.encode())


def open_log(path: Path) -> BinaryIO:
    """A file to append to, created if missing; raises OSError, also for a link."""
    fd = os.open(path, FLAGS | os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        _refuse(os.fstat(fd), path, _ANY_SIZE)
        return open(fd, "ab")  # noqa: PTH123 (a descriptor)
    except BaseException:
        os.close(fd)
        raise


def _usual() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def cache(*parts: str) -> Path:
    """``$XDG_CACHE_HOME/autotune/PARTS``, or below ``~/.cache``: for files that can be
    recreated."""
    return _below("XDG_CACHE_HOME", ".cache", parts)


def cache_about(source: Path, folder: str, version: int) -> Path | None:
    """The JSON cache file for data read from ``source``; None if ``source`` does not exist.

    The name depends on the source and on ``version``, the format of the stored data.
    """
    import hashlib  # Only here: it takes 2 ms, and most processes store nothing.

    try:
        whole = real_path(source)
        state = whole.stat()
    except OSError:
        return None
    words = (str(whole), state.st_size, state.st_mtime_ns, version)
    name = hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]
    return cache(folder, f"{name}.json")


def config(*parts: str) -> Path:
    """``$XDG_CONFIG_HOME/autotune/PARTS``, or below ``~/.config``: for the user's decisions."""
    return _below("XDG_CONFIG_HOME", ".config", parts)


def data(*parts: str) -> Path:
    """``$XDG_DATA_HOME/autotune/PARTS``, or below ``~/.local/share``: for files that must stay."""
    return _below("XDG_DATA_HOME", ".local/share", parts)


def _below(variable: str, usual: str, parts: tuple[str, ...]) -> Path:
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():
        base = Path("~").expanduser() / usual
    return base.joinpath("autotune", *parts)
