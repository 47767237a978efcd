"""The results database of a command that only reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autotune.store import Store
from autotune.terminal.render import error_console, note_line


@contextmanager
def reading(place: str | None, live: bool = False) -> Iterator[Store]:
    """The opened database; the rows that were damaged and left out are named at the end.

    ``live``: it is read again and again, so a copy of it would not do.
    """
    database = Store.open_existing(place, tolerant=True) if live else Store.open_to_read(place)
    with database:
        try:
            yield database
        finally:
            print_damage(database)


def print_damage(store: Store) -> None:
    """Name the rows that were left out of what was read, on standard error."""
    for note in store.damage.lines(store.label):
        error_console().print(note_line(note.code, note.words), markup=False, highlight=False)
