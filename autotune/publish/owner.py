"""Who may change a file: what another user could write is never executed by root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from autotune.config.find import ConfigFile, is_shipped
from autotune.errors import UsageError


def check_owner(path: Path) -> None:
    """Raise UsageError where this process is root's and another user could change ``path``.

    That is: a file, a link to it or a folder above it belongs to neither root nor the caller, or
    is writable by others (a folder with the sticky bit is not: only owners replace what is in it).
    """
    if os.geteuid() != 0:
        return
    trusted = {0, os.getuid()}
    real = path.resolve()
    for place in dict.fromkeys((path.absolute(), *path.absolute().parents, real, *real.parents)):
        try:
            seen = place.lstat()
        except OSError as problem:
            raise UsageError(f"cannot find out who owns {place}: {problem.strerror}") from None
        if seen.st_uid not in trusted:
            raise _refusal(path, place, f"belongs to user {seen.st_uid}")
        if not stat.S_ISLNK(seen.st_mode) and _open_to_others(seen):
            raise _refusal(path, place, f"is writable by others (mode {seen.st_mode & 0o7777:o})")


def check_config(file: ConfigFile) -> None:
    """As :func:`check_owner`, for a configuration of the user; the shipped ones are as safe as the
    code beside them."""
    if not is_shipped(file):
        check_owner(Path(file.path))


def _open_to_others(seen: os.stat_result) -> bool:
    if stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX:
        return False
    by_group = seen.st_mode & stat.S_IWGRP and seen.st_gid != 0
    return bool(by_group or seen.st_mode & stat.S_IWOTH)


def _refusal(path: Path, place: Path, why: str) -> UsageError:
    what = "it" if place in (path, path.absolute()) else f"{place}"
    return UsageError(
        f"{path}: nothing of it is executed as root, because {what} {why}, so that "
        "another user could decide what root runs.\nGive it to root (chown root, chmod "
        "go-w), or run the check as the user who owns it."
    )
