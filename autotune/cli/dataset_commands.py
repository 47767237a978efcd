"""``autotune dataset``: measured runs as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, Mpi, StoreUrl, total_cores
from autotune.cli.render import console, percent, seconds, table, write_json
from autotune.config.app import load_app
from autotune.config.cluster import load_cluster
from autotune.datasets.dataset import load
from autotune.datasets.describe import CellWords, Description
from autotune.datasets.describe import describe as described
from autotune.datasets.exchange import Source, import_folder
from autotune.datasets.exchange import export as exported
from autotune.errors import UsageError
from autotune.space import load_space
from autotune.store import Store, Study
from runner.mpi.discover import find

dataset = typer.Typer(help="Measured runs as files (docs/datasets.md).", no_args_is_help=True)
MIB = 1 << 20


@dataset.command("describe")
def describe(
    name: Annotated[
        str, typer.Argument(metavar="DATASET", help="A name in datasets/, or a folder.")
    ],
    json_out: JsonOut = None,
) -> None:
    """Show the cells: sizes, noise, headroom, and where nothing beats the default."""
    found = load(name)
    words = described(found)
    if json_out:
        write_json(words.to_json(), json_out)
    if json_out == "-":
        return
    card = found.card
    out = console()
    out.print(f"{card.name} ({card.kind}) of {card.date}: {card.title}", markup=False)
    out.print(
        f"{card.machine.cpu_model}, {card.machine.cores} cores; {card.mpi}; measured "
        f"{seconds(card.measured_s)} of {seconds(card.planned_s)} planned",
        markup=False,
    )
    _print(words)


def _print(words: Description) -> None:
    out = console()
    columns = ["cell", "split", ">settings", ">runs", ">ok", ">default", ">noise", ">gain", ""]
    out.print(table("", columns, [_row(cell) for cell in words.cells]))
    out.print(
        f"{words.runs} runs, {words.bytes / MIB:.2f} MiB.  noise: scatter of one default run; gain "
        "(grids): of the best setting, chosen on one half of the runs, valued on the other",
        markup=False,
    )
    for cell in words.cells:
        if cell.best and cell.null is not True:
            ratio = f"x{cell.best_ratio:.3f}" if cell.best_ratio else ""
            out.print(f"{cell.key}: smallest median {ratio}: {cell.best}", markup=False)


def _row(cell: CellWords) -> list[str]:
    state = "null" if cell.null else ""
    if not cell.complete:
        state = f"{cell.blocks}/{cell.blocks_planned} blocks"
    return [
        cell.key,
        cell.split,
        str(cell.settings),
        str(cell.runs),
        f"{cell.share_ok:.0%}",
        seconds(cell.default_s),
        "-" if cell.noise is None else f"{cell.noise * 100:.1f} %",
        percent(cell.gain),
        state,
    ]


@dataset.command("export")
def export(
    studies: Annotated[
        list[str], typer.Argument(metavar="STUDY...", help="Numbers, or beginnings of hashes.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="A new folder.")],
    mpi: Mpi = None,
    store: StoreUrl = None,
) -> None:
    """Write the runs of studies as a dataset, one cell a study."""
    with Store.open(store) as opened:
        sources = [source_of(opened.find_study(study), mpi) for study in studies]
        made = exported(sources, opened, out)
    console().print(f"wrote {out}: {len(made.runs())} runs", markup=False)


def source_of(study: Study, mpi: str | None) -> Source:
    """The study's space as it is here; refused where it is another one by now."""
    key = study.key
    cluster = load_cluster(key.cluster)
    facts = {"ranks": key.ranks, "cores": total_cores(cluster), "nodes": cluster.nodes}
    try:
        told = dict(load_app(key.app.name).input(key.app.input).facts)
    except UsageError:
        told = {}  # A program of the command line tells nothing about its input.
    space = load_space(key.space_name, library=find(mpi), facts=facts, app_facts=told)
    if space.hash != key.space_hash:
        raise UsageError(
            f"study {study.hash[:12]} searched another space {key.space_name} than there is here "
            "now: the file, the MPI or the cluster has changed (choose the MPI with --mpi)"
        )
    return Source(study, space)


@dataset.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A dataset from elsewhere.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Default: the card's name.")
    ] = None,
) -> None:
    """Check a dataset of another machine and copy it to datasets/NAME."""
    made = import_folder(folder, name)
    console().print(
        f"imported {made.folder}: {len(made.runs())} runs in {len(made.cells)} cells", markup=False
    )
