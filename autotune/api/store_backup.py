"""A backup of a results database."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

from pydantic import Field

from autotune.document import Document
from autotune.store import Store


class StoreBackup(Document):
    """A backup of a results database."""

    schema_: Literal["autotune-store-backup-1"] = Field(
        default="autotune-store-backup-1", alias="schema"
    )
    database: str
    path: str
    bytes: int
    command: list[str]
    """The argument list of pg_dump; empty for a file of SQLite."""
    restore: str
    """The command that reads or restores the backup."""


def back_up_store(place: str | None, path: Path) -> StoreBackup:
    """Write a backup of a results database; see :func:`autotune.store.backup.back_up`."""
    with Store.open_to_read(place) as store:
        backup = store.back_up(path)
        return StoreBackup(
            database=store.label,
            path=str(path),
            bytes=backup.bytes,
            command=list(backup.command),
            restore=_restore_line(store, path),
        )


def _restore_line(store: Store, path: Path) -> str:
    name = shlex.quote(str(path))
    if store.size is None:
        return f"pg_restore --no-owner --dbname=DATABASE {name}"
    return f"autotune studies --store {name}"
