"""Installation of a file: backup, one atomic step, and rollback.

Others may be able to write the folder of a published file. So each file is opened relative to its
folder, the files beside it (backup, header) are never links, and links on the way to it are
followed only if they are this user's own, root's, or the folder's owner's.

The last part checks owners: root never reads, writes or executes what another user could change.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune.config.find import ConfigFile, is_shipped
from autotune.errors import UsageError, WorkError
from autotune.publish.header import Header, read_header
from runner.files.open_folder import FileContent, OpenFolder
from runner.files.paths import exists
from runner.files.trusted_path import Step, open_to_others, steps, stranger, weakness

BACKUP = ".before-autotune"
SIDE = ".autotune"
"""Suffix of the file that holds the header if the format has no comments."""
_LARGEST = 1 << 22
_NO_FILE = (errno.EINVAL, errno.EFBIG)
"""What the file itself is, not whether it can be read."""


@dataclass(frozen=True)
class Text:
    """The text of a file; ``side`` is that of the file beside it with the header, if any."""

    main: str
    side: str | None = None

    @property
    def whole(self) -> str:
        """The file with its header."""
        return (self.side or "") + self.main

    @property
    def header(self) -> Header | None:
        """The header; raises WorkError if it is damaged."""
        return read_header(self.whole)


def load_text(path: Path) -> Text | None:
    """The file at ``path`` with the file beside it; None if it does not exist.

    Raises UsageError if it cannot be read.
    """
    try:
        main = _read(path)
        side = None if main is None else read_companion(path, side_of(path).name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        if problem.errno in _NO_FILE:
            raise UsageError(
                f"{problem.filename} cannot be a published file: {problem.strerror}",
                code="published.no_file",
            ) from None
        raise UsageError(
            f"cannot read {path}: {problem.strerror}", code="published.unreadable"
        ) from None
    if main is None:
        return None
    return Text(text_of(main), None if side is None else text_of(side))


def load_published(path: Path, refusal: str) -> tuple[Text, Header]:
    """A published file with its header.

    Raises UsageError if there is no file, or if autotune did not publish it: then ``refusal`` ends
    the message.
    """
    text = load_text(path)
    if text is None:
        raise UsageError(
            f"{path} does not exist; expected a file that autotune published",
            code="published.missing",
        )
    if text.header is None:
        raise UsageError(f"{path} was not published by autotune{refusal}", code="published.foreign")
    return text, text.header


def side_of(path: Path) -> Path:
    """The path of the file beside ``path`` that holds the header."""
    return path.with_name(path.name + SIDE)


def backup_of(path: Path) -> Path:
    """The path of the backup of ``path``."""
    return path.with_name(path.name + BACKUP)


def text_of(file: FileContent) -> str:
    """The text of a file, byte for byte."""
    return file.content.decode(errors="surrogateescape")


def install(path: Path, text: Text, backup: bool, prove: Callable[[], None]) -> None:
    """Replace ``path`` by ``text`` and run ``prove``; if that fails, restore everything.

    ``backup`` saves the present content for ``unpublish``.  Raises WorkError if the file cannot be
    written, UsageError if others could change as root what is written, and whatever ``prove``
    raises, after the rollback.
    """
    check_owners(path, backup_of(path))
    before = load_text(path)
    backup = backup and before is not None
    earlier: FileContent | None = None
    makes_folder = not exists(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if backup:
            earlier = _back_up(path)
        put(path, text)
    except OSError as problem:
        raise WorkError(
            f"cannot write {path}: {problem.strerror}", code="published.unwritable"
        ) from None
    try:
        prove()
    except BaseException:
        _restore(path, before)
        if backup:
            _restore_backup(path, earlier)
        if makes_folder:
            remove_empty_folder(path)
        raise


def _back_up(path: Path) -> FileContent | None:
    """Copy the file to its backup; returns what the backup was before.  Raises OSError."""
    present = _read(path)
    assert present is not None
    earlier = read_companion(path, backup_of(path).name)
    with _folder(path) as folder:
        folder.replace(backup_of(path).name, present)
    return earlier


def _restore_backup(path: Path, earlier: FileContent | None) -> None:
    with _folder(path) as folder:
        if earlier is None:
            folder.remove(backup_of(path).name)
        else:
            folder.replace(backup_of(path).name, earlier)


def _restore(path: Path, before: Text | None) -> None:
    if before is not None:
        put(path, before)
        return
    remove_file(path)
    remove_companion(path, side_of(path).name)


def put(path: Path, text: Text, like: FileContent | None = None) -> None:
    """Write the file and the file beside it, each atomically; raises OSError if that fails.

    The file keeps the rights that it has, or gets those of ``like``.
    """
    # A link (as in many /etc) stays a link: the file that it points to is replaced.
    real = real_path(path)
    with OpenFolder(real.parent) as folder:
        rights = like or folder.read(real.name, _LARGEST) or FileContent(b"")
        content = text.main.encode(errors="surrogateescape")
        folder.replace(real.name, FileContent(content, rights.mode, rights.uid, rights.gid))
    side = side_of(path).name
    if text.side is None:
        remove_companion(path, side)
        return
    with _folder(path) as folder:
        rights = folder.read(side, _LARGEST) or FileContent(b"")
        content = text.side.encode(errors="surrogateescape")
        folder.replace(side, FileContent(content, rights.mode, rights.uid, rights.gid))


def _read(path: Path) -> FileContent | None:
    real = real_path(path)
    with OpenFolder(real.parent) as folder:
        return folder.read(real.name, _LARGEST)


def read_companion(path: Path, name: str) -> FileContent | None:
    """The file ``name`` beside the published file ``path``; None if there is none.

    Raises OSError, also for a link and for more than 4 MiB, and UsageError for a file of another
    owner than that of ``path``: whoever may write the folder could have put it there to have it
    read or believed.
    """
    with _folder(path) as folder:
        companion = folder.read(name, _LARGEST)
    main = None if companion is None else _read(path)
    if companion is None or main is None or companion.uid == main.uid:
        return companion
    raise UsageError(
        f"{path.with_name(name)} belongs to user {companion.uid}, but {path} to user "
        f"{main.uid}: autotune writes both as one user.\nLook who put "
        "them there, and restore the file by hand",
        code="published.owner",
    )


def remove_file(path: Path) -> None:
    """Remove the file, or the link to it, if there is one; raises OSError."""
    remove_companion(path, path.name)


def remove_empty_folder(path: Path) -> None:
    """Remove the folder of the file if nothing is left in it."""
    with contextlib.suppress(OSError):  # It is not empty, or a link.
        path.parent.rmdir()


def remove_companion(path: Path, name: str) -> None:
    """Remove the file ``name`` beside ``path``, if there is one; raises OSError."""
    with _folder(path) as folder:
        folder.remove(name)


def _folder(path: Path) -> OpenFolder:
    return OpenFolder(real_path(path.absolute().parent, folder=True))


def save_edits(path: Path) -> Path:
    """Copy a hand-edited file aside before it is replaced; returns the copy.  Raises WorkError."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    copy = path.with_name(f"{path.name}.edited-{now}")
    try:
        present = _read(path)
        if present is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        with _folder(path) as folder:
            folder.create(copy.name, present)
    except OSError as problem:
        raise WorkError(
            f"cannot save the edited file as {copy}: {problem.strerror}",
            code="published.unwritable",
        ) from None
    return copy


def real_path(path: Path, folder: bool = False) -> Path:
    """The path without links; its end need not exist.  ``folder``: it is the way to another file.

    Raises OSError, and UsageError for a link that another user could have put there.
    """
    steps_by_path: dict[Path, Step] = {}
    try:
        for step in steps(path):
            above = steps_by_path.get(step.place.parent)
            if step.is_link and stranger(step) and not _of_site(step, above, folder):
                raise UsageError(
                    f"{step.place}, on the way to {path}, is a link of user {step.state.st_uid}, "
                    "who so decides which file is read or written; give the path of the file "
                    "itself",
                    code="published.link",
                )
            steps_by_path[step.place] = step
            last = step.place
    except FileNotFoundError:
        if os.path.lexists(path):  # A link that leads nowhere.
            raise
        return real_path(path.absolute().parent, folder=True) / path.name
    return last


def _of_site(link: Step, above: Step | None, folder: bool) -> bool:
    """Whether a link on the way belongs to the owner of its folder, which others may not write."""
    return (
        (folder or not link.is_end)
        and above is not None
        and above.state.st_uid == link.state.st_uid
        and not open_to_others(above)
    )


def check_owner(path: Path) -> None:
    """Raise UsageError if this process runs as root and another user could change ``path``.

    That is the case if the file, a link to it or a folder above it belongs to neither root nor the
    caller, or is writable by others.  A missing file counts as its folder does.
    """
    if os.geteuid() != 0:
        return
    place = path.absolute()
    try:
        while not os.path.lexists(place):
            place = place.parent
        weak = weakness(place, inside=place != path.absolute())
    except OSError as problem:
        raise UsageError(
            f"cannot find out who owns {path}: {problem.strerror}", code="published.owner"
        ) from None
    if weak is not None:
        raise UsageError(
            f"{path}: nothing of it is read, written or executed as root, because {weak}, so that "
            "another user could decide what root runs.\nGive it to root (chown root, chmod "
            "go-w), or give the command as the user who owns it.",
            code="publish.root",
        )


def check_owners(path: Path, backup: Path | None) -> None:
    """:func:`check_owner` for a published file and the files beside it."""
    for one in (path, side_of(path), *([] if backup is None else [backup])):
        check_owner(one)


def check_config(file: ConfigFile) -> None:
    """:func:`check_owner` for a user's configuration; shipped ones are as safe as the code."""
    if not is_shipped(file):
        check_owner(Path(file.path))
