"""Trusted paths: checks if another user could change the target of a path.

A path leads through folders and links. Whoever may write one of the folders, or created one of the
links, decides what is at the end. Only this user and root are trusted.

A group counts as other users, unless it is this user's or root's own: it has the user's name and no
other member (many distributions create such a group for each user). A parent folder that others may
write is harmless if it has the sticky bit like ``/tmp`` (only owners can replace its content), or
if it lies in a folder that only this user can enter.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import RunnerError

_MOST_LINKS = 40
_ACL = "system.posix_acl_access"
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True)
class Step:
    """A folder or link on the way to a path, or its end, with its own state (not its target's)."""

    place: Path
    state: os.stat_result
    is_end: bool
    """True if no part of the path follows (a link at the end leads on to its own target)."""

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.state.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.state.st_mode)


@dataclass(frozen=True)
class Weakness:
    """A place on the way to a path that other users control, and the reason for readers."""

    step: Step
    why: str

    def __str__(self) -> str:
        return f"{self.step.place} {self.why}"


def steps(path: Path) -> Iterator[Step]:
    """Each folder and link on the way to ``path``, starting at ``/``; the last is its end.

    Raises OSError if something on the way does not exist or cannot be entered.
    """
    waiting = list(reversed(path.absolute().parts))
    place, links = Path("/"), 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            place = place.parent  # It has no links any more.
            continue
        step = Step(place / part, os.lstat(place / part), not waiting)
        yield step
        if not step.is_link:
            place = step.place
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        waiting += reversed(step.place.readlink().parts)


def weakness(path: Path, inside: bool = False) -> Weakness | None:
    """The first place on the way to ``path`` that another user controls; None if there is none.

    The end of the path is checked more strictly than its parents: others must not write it, sticky
    or not. ``inside``: it is checked like a parent. Raises OSError as :func:`steps` does.
    """
    own: Path | None = None
    last: Step | None = None
    for step in steps(path):
        last = step
        if stranger(step):
            return Weakness(step, f"belongs to user {step.state.st_uid}")
        if step.is_link or not step.is_folder:
            continue
        is_guarded = own is not None and step.place.is_relative_to(own)
        sticky = step.state.st_mode & stat.S_ISVTX
        if not is_guarded and not sticky and open_to_others(step):
            return Weakness(step, _writable(step))
        if not is_guarded and _is_private(step.state):
            own = step.place
    if last is not None and not inside and open_to_others(last):
        return Weakness(last, _writable(last))
    return None


def refuse_others(*paths: Path) -> None:
    """Raise RunnerError for the first of these paths that others control; missing ones are
    allowed."""
    for path in paths:
        try:
            weak = weakness(path)
        except OSError:
            continue
        if weak is not None:
            raise RunnerError(
                f"{path} is for files that are executed or trusted here, but {weak}: other users "
                "could change them. Expected a place that only you and root may write: correct its "
                "owner and mode (chmod go-w), remove it, or choose another place (XDG_CACHE_HOME, "
                "XDG_DATA_HOME, XDG_RUNTIME_DIR, NUMBA_CACHE_DIR)",
                code="file.writable_by_others",
            )


def stranger(step: Step) -> bool:
    """True if a file belongs to a user other than this one and root."""
    uid = step.state.st_uid
    if uid in (0, os.getuid(), os.geteuid()):
        return False
    # A container without root: the system's root has no number in it, but owns parent folders.
    unknown = step.is_folder and not step.is_end and uid == _number("overflowuid")
    return not unknown or _has_root()


def open_to_others(step: Step) -> bool:
    """True if users other than its owner and root may write a file or folder."""
    mode = step.state.st_mode
    if step.is_link:
        return False
    if mode & stat.S_IWOTH:
        return True
    if not mode & stat.S_IWGRP:
        return False
    return not own_group(step.state.st_gid) or _names_others(step.place)


def own_group(gid: int) -> bool:
    """True if a group is this user's or root's own: the user's name, and no other member."""
    import grp  # Only here: hardly any file is group-writable.
    import pwd

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    for uid in (os.geteuid(), 0):
        try:
            user = pwd.getpwuid(uid)
        except KeyError:
            continue
        if user.pw_gid == gid and group.gr_name == user.pw_name:
            return set(group.gr_mem) <= {user.pw_name}
    return False


def _names_others(place: Path) -> bool:
    """True if an access list may give rights to others; the group's bits are then its mask."""
    try:
        return bool(os.getxattr(place, _ACL, follow_symlinks=False))
    except OSError:
        return False


def _is_private(state: os.stat_result) -> bool:
    """True if only the owner of a folder can enter it."""
    return not state.st_mode & _OTHERS_ENTER


def _writable(step: Step) -> str:
    mode = stat.S_IMODE(step.state.st_mode)
    group = "" if mode & stat.S_IWOTH else f", group {step.state.st_gid}"
    return f"is writable by others (mode {mode:04o}{group})"


def _number(name: str) -> int:
    try:
        return int(Path("/proc/sys/kernel", name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return -1


def _has_root() -> bool:
    """True if the system's root has a number in this process's user namespace."""
    try:
        rows = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
        return any(int(row.split()[1]) == 0 for row in rows)
    except (OSError, ValueError, IndexError):
        return True
