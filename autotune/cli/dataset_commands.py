"""``autotune dataset``: list, describe, trace, classify, export and import datasets.

Each command imports what it needs, so that the list does not wait for pandas or scikit-learn.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import Guard, Mpi
from autotune.datasets.card import Cell, read_card
from autotune.datasets.catalog import FOLDER, is_shipped, list_datasets, own_folder
from autotune.document import Document, Omitted
from autotune.errors import UsageError
from autotune.terminal.datasets import print_cells
from autotune.terminal.render import print_line, print_note, print_table, write_document
from autotune.wording import count, seconds
from runner.files.paths import exists, is_file

if TYPE_CHECKING:
    pass

dataset = typer.Typer(
    help="List, describe, trace, export and import datasets (measured runs as files).",
    no_args_is_help=True,
)


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


@dataset.command("list")
def list_(json_out: JsonOut = None) -> None:
    """List the datasets: in this directory, your own, and the shipped ones."""
    found = [_entry(folder) for folder in list_datasets()]
    if not write_document(found, json_out):
        return
    rows = [
        [
            entry.name,
            entry.kind,
            "-" if entry.cells is None else str(entry.cells),
            entry.date or "-",
            "autotune itself" if entry.shipped else f"{Path(entry.folder).parent}",
        ]
        for entry in found
    ]
    columns = ["dataset", "kind", ">cells", "date", "in"]
    print_table("", columns, rows)


def _entry(folder: Path) -> DatasetRow:
    shipped = is_shipped(folder)
    try:
        card = read_card(folder)
    except UsageError:
        return DatasetRow(name=folder.name, kind="damaged", folder=f"{folder}", shipped=shipped)
    return DatasetRow(
        name=folder.name,
        kind=card.kind,
        folder=f"{folder}",
        cells=len(card.cells),
        date=card.date,
        shipped=shipped,
    )


@dataset.command("describe")
def describe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Dataset: its name (see autotune dataset list) or its folder.",
            autocompletion=completion.datasets,
        ),
    ],
    json_out: JsonOut = None,
) -> None:
    """Show the cells of a dataset: runs, noise, possible gain, and where the default is best."""
    from autotune.datasets.dataset import load
    from autotune.datasets.describe import describe as described

    found = load(name)
    words = described(found)
    if not write_document(words, json_out):
        return
    card = found.card
    print_line(f"{card.name} ({card.kind}) of {card.date}: {card.title}")
    # Exported studies have no planned time.
    planned = f"; planned {seconds(card.planned_s)}" if card.planned_s else ""
    print_line(
        f"{card.machine.cpu_model}, {card.machine.cores} cores; {card.mpi}; measured "
        f"in {seconds(card.measured_s)}{planned}"
    )
    print_cells(words)
    if card.guard_note:
        print_note(card.guard_note)


@dataset.command("trace")
def trace(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Dataset: its name (see autotune dataset list) or its folder.",
            autocompletion=completion.datasets,
        ),
    ],
    mpi: Mpi = None,
    guard: Guard = True,
    force: Annotated[
        bool, opt("--force", "Trace again the cells that have features already.")
    ] = False,
    run_recorded: Annotated[
        bool,
        opt("--run-recorded", "Run the programs with the arguments that the dataset's card gives."),
    ] = False,
) -> None:
    """Trace one run of every cell, for the features that predict and classes need.

    The programs are the applications known here by the same name.  Arguments from the dataset's
    card are used with --run-recorded only.
    """
    from autotune.api.features import traced_features
    from autotune.api.target import find_target
    from autotune.datasets.dataset import FEATURES, load
    from autotune.datasets.plan import with_args
    from autotune.targets.request import TargetRequest

    found = load(name)
    place = found.folder / FEATURES
    done = 0
    wanted = [
        cell
        for cell in found.cells
        if (force or not exists(place / f"{cell.key}.json")) and not found.space(cell).requires
    ]
    if wanted and is_shipped(found.folder):
        raise UsageError(
            f"{found.folder} is shipped with autotune and is not changed; copy it first "
            f"with: autotune dataset import {shlex.quote(str(found.folder))}",
            code="dataset.shipped",
        )
    if not run_recorded:
        _refuse_arguments(wanted)
    for cell in wanted:
        path = place / f"{cell.key}.json"
        words = TargetRequest(
            app=cell.app,
            input=cell.input or None,
            ranks=cell.ranks,
            cluster=cell.cluster,
            mpi=mpi,
            command="dataset trace",
        )
        target = find_target(words)
        if cell.args is not None:
            app = with_args(target.app, cell.input or target.app.usual_input, cell.args)
            target = dataclasses.replace(target, app=app)
        features, _ = traced_features(target, guard=guard)
        place.mkdir(exist_ok=True)
        features.portable().save(path)
        done += 1
    have = sum(is_file(place / f"{cell.key}.json") for cell in found.cells)
    print_line(f"{count(done, 'cell')} traced; {have} of {len(found.cells)} cells have features")


def _refuse_arguments(cells: Sequence[Cell]) -> None:
    given = [cell for cell in cells if cell.args is not None]
    if given:
        lines = "".join(f"\n  {c.key}: {c.app} {list(c.args or ())!r:.400}" for c in given[:8])
        raise UsageError(
            "the dataset's card gives arguments for the programs of "
            f"{count(len(given), 'cell')}:{lines}\nNothing was run. Check these arguments; "
            "if you want to run them here, add --run-recorded",
            code="dataset.untrusted_arguments",
        )


@dataset.command("classes")
def classes(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Dataset: its name (see autotune dataset list) or its folder.",
            autocompletion=completion.datasets,
        ),
    ],
    number: Annotated[
        int | None,
        opt(
            "--classes K",
            "Number of classes. Default: the number with the clearest separation (largest "
            "silhouette).",
            min=1,
        ),
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Group the cells into classes of programs with similar features (clustering).

    To find the setting of one class: autotune classwide DATASET --class N
    """
    from autotune.prediction.classes import ClassList, find_classes, words_of
    from autotune.prediction.examples import training_set

    found = find_classes(training_set([name]).examples, number)
    if not write_document(ClassList(silhouette=found.silhouette, classes=found.classes), json_out):
        return
    clear = "-" if found.silhouette is None else f"{found.silhouette:.2f}"
    print_line(f"{len(found.classes)} classes; mean silhouette {clear} (1: clearly separated)")
    for one in found.classes:
        print_line(f"class {one.number}: {', '.join(one.cells)}")
        if one.marks:
            print_line(f"  {words_of(one.marks)}")


@dataset.command("export")
def export(
    studies: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY...",
            help="Studies: numbers or first digits of their hashes (autotune studies).",
            autocompletion=completion.studies,
        ),
    ],
    out: Annotated[Path, opt("-o --out FOLDER", "New folder for the dataset.")],
    mpi: Mpi = None,
    store: StoreUrl = None,
) -> None:
    """Write the runs of studies as a dataset, one cell per study."""
    from autotune.api.datasets import source_of
    from autotune.cli.reading import reading
    from autotune.datasets.exchange import export_cells as exported

    with reading(store) as opened:
        sources = [source_of(opened.find_study(study), mpi) for study in studies]
        made = exported(sources, opened, out)
    print_line(f"wrote {out}: {len(made.runs())} runs")


@dataset.command("import")
def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the dataset to import.")
    ],
    name: Annotated[
        str | None, opt("--name NAME", "Name of the copy. Default: the name on the dataset's card.")
    ] = None,
    user: Annotated[
        bool, opt("--user", "Copy it to your own datasets, which are found from every directory.")
    ] = False,
) -> None:
    """Check a dataset from another machine and copy it to datasets/NAME."""
    from autotune.datasets.exchange import import_folder

    made = import_folder(folder, name, own_folder() if user else FOLDER)
    print_line(f"imported {made.folder}: {len(made.runs())} runs in {len(made.cells)} cells")
