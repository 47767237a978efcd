"""Writing a dataset's folder: card, spaces, settings; shards have a module of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.datasets.card import CARD, Card
from autotune.datasets.dataset import ALL, SETTINGS, SPACES, Dataset, load, settings_text
from autotune.datasets.frozen import frozen
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from runner.whole import write_whole


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step; raises UsageError where that place cannot be written."""
    try:
        write_whole(path, text, mode=0o644)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None


def write_card(folder: Path, card: Card) -> None:
    """Write or replace the card."""
    write_text(folder / CARD, card.text())


def create(
    folder: Path,
    card: Card,
    spaces: Mapping[str, Space],
    settings: Mapping[str, Sequence[Setting]],
) -> Dataset:
    """A dataset without runs.  ``spaces`` by cell key; ``settings`` by cell key or ``"all"``.

    Index 0 must be the default.  The card is written last: a folder without one is no dataset.
    """
    for key, listed in settings.items():
        if not listed or listed[0] != DEFAULT:
            raise ValueError(f"settings of {key} do not begin with the default")
        write_text(folder / SETTINGS / f"{key}.json", settings_text(listed))
    for key, space in spaces.items():
        write_text(folder / SPACES / f"{key}.toml", frozen(space))
    write_card(folder, card)
    return load(folder)


__all__ = ["ALL", "create", "write_card", "write_text"]
