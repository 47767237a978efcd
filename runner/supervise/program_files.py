"""Program files: the executables of the ranks and their own libraries, as /proc shows them.

A look notes path and identity of each file, and opens a file with unknown content. It is hashed
after the run, even if it was removed or replaced by then (by a wrapper that runs a copy).

Libraries of the system and installed packages are left out: a package manager replaces them, and
the MPI library, the machine and the Python installation identify them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from runner.executables import Identity, digest_of, identity_of
from runner.process import read_proc
from runner.supervise.messages import ProgramFile
from runner.types import ExecutableKind, ExecutablePlace

_SYSTEM = (
    *("/usr/bin/", "/usr/sbin/", "/usr/lib", "/usr/libexec/", "/lib", "/bin/", "/sbin/"),
    *("/nix/store/", "/gnu/store/", "/snap/", "/proc/", "/sys/", "/dev/", "/SYSV"),
)
_INSTALL_FOLDERS = ("/site-packages/", "/dist-packages/", "/lib-dynload/")
_DELETION_MARK = " (deleted)"
_MOST_LIBRARIES = 100
_MOST_WORDS = 1000
_DIGESTS: dict[Identity, str] = {}
"""Digests of files that this process has hashed, by identity."""


@dataclass(frozen=True)
class _RankFile:
    """A file of a rank; ``fd`` is open if it has to be hashed, else -1."""

    path: str
    kind: ExecutableKind
    identity: Identity
    fd: int
    is_local: bool = True
    argv: tuple[str, ...] = ()
    cwd: str = ""


class ProgramFiles:
    """The files of one run, over all looks at its ranks."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, Identity], _RankFile] = {}

    def look(self, pid: int) -> None:
        """Note the files of one process, if it is alive; about 0.3 ms."""
        place = f"/proc/{pid}/exe"
        try:
            path = os.readlink(place)  # noqa: PTH115 (a process that is looked at many times)
            cwd = os.readlink(f"/proc/{pid}/cwd").removesuffix(_DELETION_MARK)  # noqa: PTH115
        except OSError:
            return
        words = read_proc(f"/proc/{pid}/cmdline").split(b"\0")[:-1][:_MOST_WORDS]
        argv = tuple(word.decode(errors="replace") for word in words)
        self._note(path, "program", place, argv, cwd)
        for library, inode in _libraries(pid, path):
            self._note(library, "library", library, inode=inode)

    def _note(
        self,
        path: str,
        kind: ExecutableKind,
        place: str,
        argv: tuple[str, ...] = (),
        cwd: str = "",
        inode: int | None = None,
    ) -> None:
        try:
            identity = identity_of(place)
        except OSError:
            return
        if (path, identity) in self._files or (inode is not None and inode != identity[1]):
            return
        fd = -1
        if identity not in _DIGESTS:
            try:
                fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                return
        # A replaced file is gone from its path, which belongs to this namespace.
        is_local = kind == "library" or path.endswith(_DELETION_MARK) or _is_here(path, identity)
        path = path.removesuffix(_DELETION_MARK)
        self._files[path, identity] = _RankFile(path, kind, identity, fd, is_local, argv, cwd)

    def close(self) -> tuple[ProgramFile, ...]:
        """The files with their digests, in the order of their paths; the run has ended."""
        rows: dict[tuple[str, str], ProgramFile] = {}
        for key in sorted(self._files):
            one = self._files[key]
            if one.fd >= 0:
                with contextlib.suppress(OSError):
                    _DIGESTS[one.identity] = digest_of(one.fd)
                os.close(one.fd)
            if (digest := _DIGESTS.get(one.identity)) is not None:
                # Removing a file changes its identity, not its content.
                rows[one.path, digest] = ProgramFile(
                    one.path, digest, one.kind, _place(one), one.identity[3], one.argv, one.cwd
                )
        self._files.clear()
        return tuple(rows.values())


def _is_here(path: str, identity: Identity) -> bool:
    """True if the path names a file of this mount namespace, as far as it still exists."""
    try:
        return identity_of(path)[1] == identity[1]
    except OSError:
        return True


def _place(one: _RankFile) -> ExecutablePlace:
    if not one.is_local:
        return "elsewhere"
    return "here" if os.path.exists(one.path) else "removed"  # noqa: PTH110


def _libraries(pid: int, program: str) -> Iterator[tuple[str, int]]:
    """Paths and inodes of the program's own libraries."""
    paths: set[str] = {program}
    for line in read_proc(f"/proc/{pid}/maps").splitlines():
        # ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH
        parts = line.split(maxsplit=5)
        if len(parts) < 6 or b"x" not in parts[1] or not parts[5].startswith(b"/"):
            continue
        path = parts[5].decode(errors="replace")
        if path not in paths and _counts(path):
            paths.add(path)
            yield path, int(parts[4])
            if len(paths) > _MOST_LIBRARIES:
                return


def _counts(path: str) -> bool:
    """True if a mapped file may be one of the program's own libraries.

    A library that was removed after loading was compiled at run time.
    """
    is_installed = path.startswith(_SYSTEM) or any(part in path for part in _INSTALL_FOLDERS)
    return not (is_installed or path.endswith(_DELETION_MARK))
