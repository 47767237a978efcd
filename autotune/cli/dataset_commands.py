"""``autotune dataset``: list, describe, trace, classify, export and import datasets.

Each command imports what it needs, so that the list does not wait for pandas or scikit-learn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.api.dataset_list import dataset_list
from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import Guard, Mpi
from autotune.datasets.catalog import FOLDER, own_folder
from autotune.terminal.datasets import print_classes, print_dataset, print_datasets
from autotune.terminal.render import print_line, write_document
from autotune.wording import count

dataset = typer.Typer(
    help="List, describe, trace, export and import datasets (measured runs as files).",
    no_args_is_help=True,
)
DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="Dataset: its name (see autotune dataset list) or its folder.",
        autocompletion=completion.datasets,
    ),
]


@dataset.command("list")
def list_(json_out: JsonOut = None) -> None:
    """List the datasets: in this directory, your own, and the shipped ones."""
    rows = dataset_list()
    if write_document(rows, json_out):
        print_datasets(rows)


@dataset.command("describe")
def describe(
    name: DatasetName,
    json_out: JsonOut = None,
) -> None:
    """Show the cells of a dataset: runs, noise, possible gain, and where the default is best."""
    from autotune.datasets.dataset import load
    from autotune.datasets.describe import describe as describe_dataset

    runs = load(name)
    words = describe_dataset(runs)
    if write_document(words, json_out):
        print_dataset(runs.card, words)


@dataset.command("trace")
def trace(
    name: DatasetName,
    mpi: Mpi = None,
    guard: Guard = True,
    force: Annotated[bool, opt("--force", "Trace cells again that already have features.")] = False,
    run_recorded: Annotated[
        bool,
        opt("--run-recorded", "Run the programs with the arguments that the dataset's card gives."),
    ] = False,
) -> None:
    """Trace one run of every cell, for the features that predict and classes need.

    The programs are the applications known here by the same name.  Arguments from the dataset's
    card are used with --run-recorded only.
    """
    from autotune.api.dataset_trace import trace_cells
    from autotune.datasets.dataset import load

    runs = load(name)
    traces, have = trace_cells(runs, mpi, guard, force, run_recorded)
    print_line(f"{count(traces, 'cell')} traced; {have} of {len(runs.cells)} cells have features")


@dataset.command("classes")
def classes(
    name: DatasetName,
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
    from autotune.prediction.classes import ClassList, find_classes
    from autotune.prediction.examples import training_set

    grouping = find_classes(training_set([name]).examples, number)
    if write_document(
        ClassList(silhouette=grouping.silhouette, classes=grouping.classes), json_out
    ):
        print_classes(grouping)


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
    from autotune.datasets.exchange import export_cells

    with reading(store) as database:
        sources = [source_of(database.find_study(study), mpi) for study in studies]
        copy = export_cells(sources, database, out)
    print_line(f"wrote {out}: {len(copy.runs())} runs")


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

    copy = import_folder(folder, name, own_folder() if user else FOLDER)
    print_line(f"imported {copy.folder}: {len(copy.runs())} runs in {len(copy.cells)} cells")
