"""Installation of a file: backup, one atomic step, and rollback.

The second part checks owners: root never executes what another user could have written.
"""

from __future__ import annotations

import datetime
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune.config.find import ConfigFile, is_shipped
from autotune.errors import UsageError, WorkError
from autotune.publish.header import Header, read_header, untouched
from runner.files import atomic_file, read_bytes

BACKUP = ".before-autotune"
SIDE = ".autotune"
"""Suffix of the file that holds the header if the format has no comments."""
_LARGEST = 1 << 22


@dataclass(frozen=True)
class Text:
    """The text of a file; ``side`` is that of the file beside it with the header, if any."""

    main: str
    side: str | None = None

    @property
    def whole(self) -> str:
        """The text over which header and checksum are computed."""
        return (self.side or "") + self.main

    @property
    def header(self) -> Header | None:
        """The header; raises WorkError if it is damaged."""
        return read_header(self.whole)

    @property
    def edited(self) -> bool:
        return not untouched(self.whole)


def read_installed(path: Path) -> Text | None:
    """The file at ``path`` with the file beside it; None if it does not exist.

    Raises UsageError if it cannot be read.
    """
    side = side_of(path)
    try:
        if not path.exists():
            return None
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise UsageError(
                f"{path} is not a regular file of at most 4 MiB, so it cannot be a published file",
                code="published.no_file",
            )
        return Text(read(path), read(side) if side.is_file() else None)
    except OSError as problem:
        raise UsageError(
            f"cannot read {path}: {problem.strerror}", code="published.unreadable"
        ) from None


def side_of(path: Path) -> Path:
    """The path of the file beside ``path`` that holds the header."""
    return path.with_name(path.name + SIDE)


def backup_of(path: Path) -> Path:
    """The path of the backup of ``path``."""
    return path.with_name(path.name + BACKUP)


def install(path: Path, text: Text, backup: bool, prove: Callable[[], None]) -> None:
    """Replace ``path`` by ``text`` and run ``prove``; if that fails, restore everything.

    ``backup`` saves the present content for ``unpublish``.  Raises WorkError if the file cannot be
    written, and whatever ``prove`` raises, after the rollback.
    """
    before = read_installed(path)
    kept = backup_of(path)
    had_backup = kept.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if backup and before is not None:
            shutil.copy2(path, kept)
        put(path, text)
    except OSError as problem:
        raise WorkError(
            f"cannot write {path}: {problem.strerror}", code="published.unwritable"
        ) from None
    try:
        prove()
    except BaseException:
        _restore(path, before)
        if backup and not had_backup:
            kept.unlink(missing_ok=True)
        raise


def _restore(path: Path, before: Text | None) -> None:
    if before is not None:
        put(path, before)
        return
    path.unlink(missing_ok=True)
    side_of(path).unlink(missing_ok=True)


def put(path: Path, text: Text) -> None:
    """Write the file and the file beside it, each atomically; raises OSError if that fails."""
    _write(path, text.main)
    if text.side is None:
        side_of(path).unlink(missing_ok=True)
    else:
        _write(side_of(path), text.side)


def _write(path: Path, text: str) -> None:
    # A link (as in many /etc) stays a link: the file that it points to is replaced.
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with atomic_file(path, mode) as part:
        part.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")


def read(path: Path) -> str:
    """The text of a regular file of at most 4 MiB, byte for byte; raises OSError otherwise."""
    return read_bytes(path, _LARGEST).decode("utf-8", "surrogateescape")


def keep_edited(path: Path) -> Path:
    """Copy a hand-edited file aside before it is replaced; returns the copy.  Raises WorkError."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.name}.edited-{now}")
    try:
        shutil.copy2(path, kept)
    except OSError as problem:
        raise WorkError(
            f"cannot save the edited file as {kept}: {problem.strerror}",
            code="published.unwritable",
        ) from None
    return kept


def check_owner(path: Path) -> None:
    """Raise UsageError if this process runs as root and another user could change ``path``.

    That is the case if the file, a link to it or a folder above it belongs to neither root nor the
    caller, or is writable by others.  A folder with the sticky bit does not count as writable,
    because only owners can replace files in it.
    """
    if os.geteuid() != 0:
        return
    trusted = {0, os.getuid()}
    real = path.resolve()
    for place in dict.fromkeys((path.absolute(), *path.absolute().parents, real, *real.parents)):
        try:
            seen = place.lstat()
        except OSError as problem:
            raise UsageError(
                f"cannot find out who owns {place}: {problem.strerror}", code="published.owner"
            ) from None
        if seen.st_uid not in trusted:
            raise _refusal(path, place, f"belongs to user {seen.st_uid}")
        if not stat.S_ISLNK(seen.st_mode) and _open_to_others(seen):
            raise _refusal(path, place, f"is writable by others (mode {seen.st_mode & 0o7777:o})")


def check_config(file: ConfigFile) -> None:
    """:func:`check_owner` for a user's configuration; shipped ones are as safe as the code."""
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
        "go-w), or run the check as the user who owns it.",
        code="publish.root",
    )
