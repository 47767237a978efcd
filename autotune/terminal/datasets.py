"""Terminal output of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.dataset_list import DatasetRow
from autotune.terminal.render import WIDTH, print_line, print_note, print_table
from autotune.wording import beginning, percent, seconds

if TYPE_CHECKING:
    from autotune.datasets.card import Card
    from autotune.datasets.describe import CellWords, Description
    from autotune.prediction.classes import Classes


MIB = 1 << 20


def _print_cells(words: Description) -> None:
    columns = ["cell", "split", ">settings", ">runs", ">ok", ">default", ">noise", ">gain", ""]
    print_table("", columns, [_row(cell) for cell in words.cells])
    print_line(
        f"{words.runs} runs, {words.bytes / MIB:.2f} MiB. noise: scatter of single "
        "runs of the default; gain (grids only): gain of the best setting, which is "
        "chosen on one half of the runs and valued on the other half"
    )
    for cell in words.cells:
        if cell.best and cell.null is not True:
            ratio = f" at {cell.best_ratio:.3f} x the default's time" if cell.best_ratio else ""
            headline = f"{cell.key}: fastest of the others{ratio}: "
            room = 2 * WIDTH - len(headline)
            print_line(f"{headline}{beginning(cell.best, room)}")


def _row(cell: CellWords) -> list[str]:
    state = "null" if cell.null else ""
    if not cell.complete:
        is_unfinished = cell.blocks < cell.blocks_planned or not cell.runs
        state = f"{cell.blocks}/{cell.blocks_planned} blocks" if is_unfinished else "too few runs"
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


def print_datasets(rows: Sequence[DatasetRow]) -> None:
    """Print the list of datasets."""
    lines = [
        [
            row.name,
            row.kind,
            "-" if row.cells is None else str(row.cells),
            row.date or "-",
            "autotune itself" if row.shipped else f"{Path(row.folder).parent}",
        ]
        for row in rows
    ]
    columns = ["dataset", "kind", ">cells", "date", "in"]
    print_table("", columns, lines)


def print_dataset(card: Card, words: Description) -> None:
    """Print the card of a dataset and its cells."""
    title = f": {card.title}" if card.title else ""
    print_line(f"{card.name} ({card.kind}) of {card.date}{title}")
    # Exported studies have no planned time.
    plan_words = f"; planned {seconds(card.planned_s)}" if card.planned_s else ""
    print_line(
        f"{card.machine.cpu_model}, {card.machine.cores} cores; {card.mpi}; measured "
        f"in {seconds(card.measured_s)}{plan_words}"
    )
    _print_cells(words)
    if card.guard_note:
        print_note(card.guard_note)


def print_classes(grouping: Classes) -> None:
    """Print classes of programs."""
    from autotune.prediction.classes import words_of

    clear = "-" if grouping.silhouette is None else f"{grouping.silhouette:.2f}"
    print_line(f"{len(grouping.classes)} classes; mean silhouette {clear} (1: clearly separated)")
    for one in grouping.classes:
        print_line(f"class {one.number}: {', '.join(one.cells)}")
        if one.marks:
            print_line(f"  {words_of(one.marks)}")
