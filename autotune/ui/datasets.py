"""Datasets: the list, and the card of one with its cells."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from autotune.datasets import load
from autotune.datasets.card import Card, read_card
from autotune.datasets.catalog import is_shipped, list_datasets
from autotune.datasets.describe import Description, describe
from autotune.errors import UsageError
from autotune.ui.site import Site, View


@dataclass(frozen=True)
class ListedDataset:
    """A dataset of the list; without a card it is damaged, and ``problem`` says how."""

    name: str
    is_shipped: bool
    card: Card | None
    problem: str = ""


def datasets_page(site: Site, request: Request) -> View:
    """All datasets that can be found by name."""
    datasets = []
    for folder in list_datasets():
        try:
            datasets.append(ListedDataset(folder.name, is_shipped(folder), read_card(folder)))
        except UsageError as problem:
            datasets.append(ListedDataset(folder.name, is_shipped(folder), None, str(problem)))
    return View("datasets.html", "Datasets", "/datasets", {"datasets": datasets})


def dataset_page(site: Site, request: Request) -> View:
    """The card of a dataset."""
    name = _dataset_name(request)
    card = read_card(next(f for f in list_datasets() if f.name == name))
    facts = [
        ("kind", card.kind),
        ("measured", card.date),
        ("why", card.why),
        ("MPI", card.mpi),
        ("machine", f"{card.machine.cpu_model}, {card.machine.cores} cores"),
        ("kernel", card.machine.kernel),
        ("protocol", " ".join(card.protocol)),
        ("measure it again", card.regenerate),
        ("guard", card.guard_note.words if card.guard_note else ""),
    ]
    return View(
        "dataset.html",
        f"Dataset {name}",
        "/datasets",
        {"name": name, "card": card, "facts": [(n, v) for n, v in facts if v]},
    )


def cells_page(site: Site, request: Request) -> View:
    """The figures of each cell, from all recorded runs; a part of the card's page."""
    name = _dataset_name(request)
    description: Description = site.memoise(("dataset", name), lambda: describe(load(name)))
    return View("cells.html", f"Cells of {name}", "/datasets", {"found": description})


def _dataset_name(request: Request) -> str:
    """The name in the address if it is that of a dataset; raises UsageError otherwise."""
    name = str(request.path_params["name"])
    if name not in {folder.name for folder in list_datasets()}:
        raise UsageError(
            f"no dataset {name[:80]!r}; the list of datasets names them", code="dataset.unknown"
        )
    return name
