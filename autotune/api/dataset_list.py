"""The list of datasets, as a document."""

from __future__ import annotations

from pathlib import Path

from autotune.datasets.card import read_card
from autotune.datasets.catalog import is_shipped, list_datasets
from autotune.document import Document, Omitted
from autotune.errors import UsageError


class DatasetRow(Document):
    """A dataset; one that cannot be read has no cells and no date."""

    name: str
    kind: str
    """grid, exploration, ...; damaged if it cannot be read."""
    folder: str
    cells: Omitted[int] = None
    date: Omitted[str] = None
    shipped: bool


DatasetList = list[DatasetRow]


def dataset_list() -> DatasetList:
    """The datasets: in this directory, of the user, and the shipped ones."""
    return [_row(folder) for folder in list_datasets()]


def _row(folder: Path) -> DatasetRow:
    is_ours = is_shipped(folder)
    try:
        card = read_card(folder)
    except UsageError:
        return DatasetRow(name=folder.name, kind="damaged", folder=f"{folder}", shipped=is_ours)
    return DatasetRow(
        name=folder.name,
        kind=card.kind,
        folder=f"{folder}",
        cells=len(card.cells),
        date=card.date,
        shipped=is_ours,
    )
