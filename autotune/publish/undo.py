"""Unpublishing: removes what autotune wrote and keeps what others wrote."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import UsageError, WorkError
from autotune.publish.block import Split, split_block
from autotune.publish.formats import find
from autotune.publish.header import Header
from autotune.publish.install import (
    BACKUP,
    Text,
    check_owners,
    load_published,
    put,
    read_companion,
    remove_companion,
    remove_empty_folder,
    remove_file,
    save_edits,
    side_of,
    text_of,
)
from autotune.publish.published_files import forget
from autotune.publish.published_text import edit


def remove(path: Path, force: bool = False) -> str:
    """Undo a publication, and take the file off the list; returns a sentence about what was done.

    If lines of others stay in the file, only the published block is removed, whatever was written
    around it since.  Any other file gets its previous content.  A folder that publishing made goes
    with its last file.

    Raises UsageError for a file that autotune did not publish, for one that others could change if
    this is root, and, without ``force``, if the published part was edited since; WorkError if the
    backup is gone.
    """
    check_owners(path, None)
    text, header = load_published(path, "; it is left as it is")
    backup = previous_content(path, header)
    check_owners(path, backup)
    words = ""
    if (difference := edit(path, text, header)) is not None:
        if not force:
            raise UsageError(
                f"{path} was edited after autotune published it; undoing would lose the edits.\n"
                f"{difference}.\nUndo your edits and give the command again, or use --force: it "
                "removes the published part anyway and saves the edited file beside it.",
                code="published.edited",
            )
        words = f"; the edited file was saved as {save_edits(path)}"
    parts = split_block(text.main) if _keeps_others(header) else None
    try:
        sentence = _restore(path, backup) if parts is None else _take_out(path, parts, backup)
        remove_companion(path, side_of(path).name)
        if header.makes_folder:
            remove_empty_folder(path)
    except OSError as problem:
        raise WorkError(
            f"cannot undo {path}: {problem.strerror}", code="published.undo_failed"
        ) from None
    forget(path)
    return sentence + words


def previous_content(path: Path, header: Header) -> Path | None:
    """The file with the previous content; None if there was none.  Raises WorkError for another
    name than a backup's."""
    if header.backup is None:
        return None
    if not header.backup.endswith(BACKUP):
        raise WorkError(
            f"the header of {path} names {header.backup!r} as its backup, but autotune's "
            f"backups are called FILE{BACKUP}; the file was not changed",
            code="published.backup",
        )
    return path.with_name(header.backup)


def _keeps_others(header: Header) -> bool:
    try:
        return find(header.format).merges
    except UsageError:  # A later version may know this format.
        return False


def _take_out(path: Path, parts: Split, backup: Path | None) -> str:
    """Remove the block; delete the file if nothing is left and it did not exist before."""
    previous = None if backup is None else read_companion(path, backup.name)
    before = None if previous is None else text_of(previous)
    others = parts.others
    if before is not None and others == f"{before}\n":
        others = before  # Publishing had added the newline at the end.
    if backup is None and not others:
        remove_file(path)
        return f"removed {path}"
    put(path, Text(others), previous if others == before else None)
    if others == before:
        assert backup is not None
        remove_companion(path, backup.name)
        return f"restored {path} from {backup.name}"
    sentence = f"removed what autotune had published from {path}; its other lines stay as they are"
    return sentence + (
        f" ({backup.name} has the lines from before)"
        if backup is not None and previous is not None
        else ""
    )


def _restore(path: Path, backup: Path | None) -> str:
    """Restore the previous content of the whole file."""
    if backup is None:
        remove_file(path)
        return f"removed {path}"
    previous = read_companion(path, backup.name)
    if previous is None:
        raise WorkError(
            f"the backup {backup} does not exist any more; {path} was not changed",
            code="published.backup_missing",
        )
    put(path, Text(text_of(previous)), previous)
    remove_companion(path, backup.name)
    return f"restored {path} from {backup.name}"
