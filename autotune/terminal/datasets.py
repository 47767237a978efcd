"""Terminal output of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import WIDTH, print_line, print_table
from autotune.wording import beginning, percent, seconds

if TYPE_CHECKING:
    from autotune.datasets.describe import CellWords, Description


MIB = 1 << 20


def print_cells(words: Description) -> None:
    columns = ["cell", "split", ">settings", ">runs", ">ok", ">default", ">noise", ">gain", ""]
    print_table("", columns, [_row(cell) for cell in words.cells])
    print_line(
        f"{words.runs} runs, {words.bytes / MIB:.2f} MiB. noise: scatter of single "
        "runs of the default; gain (grids only): gain of the best setting, which is "
        "chosen on one half of the runs and valued on the other half"
    )
    for cell in words.cells:
        if cell.best and cell.null is not True:
            ratio = f"x{cell.best_ratio:.3f}" if cell.best_ratio else ""
            said = f"{cell.key}: smallest median {ratio}: "
            room = 2 * WIDTH - len(said)
            print_line(f"{said}{beginning(cell.best, room)}")


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
