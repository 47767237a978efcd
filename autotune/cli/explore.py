"""``autotune explore``: measures the cells of an exploration plan as a dataset."""

from __future__ import annotations

import shlex
from pathlib import Path

from autotune.api.requests import ExploreRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.terminal.campaign import (
    CampaignProgress,
    print_campaign,
    print_continuation,
    print_plan,
)
from autotune.terminal.render import to_stderr, write_document, write_json


@takes_request
def explore(request: ExploreRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Measure the cells of a plan into a dataset, block by block.

    The same command continues an interrupted measurement.
    """
    from autotune.api.campaign import cell_target, planned_dataset
    from autotune.api.target import common_library
    from autotune.datasets.campaign import Campaign
    from autotune.datasets.catalog import FOLDER
    from autotune.datasets.describe import ExploredDataset, describe
    from autotune.datasets.plan import load_plan, prepare_dataset, start_dataset
    from autotune.notes import Note
    from autotune.store import Store
    from autotune.targets.resolve import refuse_nested_launch

    refuse_nested_launch()
    plan = load_plan(request.plan)
    cells = plan.select_cells(
        [key.strip() for key in request.cells.split(",")] if request.cells else []
    )
    notes: dict[str, Note] = {}

    def say_once(note: Note) -> None:
        if note.words not in notes:
            to_stderr(notes.setdefault(note.words, note))

    prepared_cells = prepare_dataset(
        plan, cells, lambda cell: cell_target(cell, request.target.mpi, say_once)
    )
    library = common_library(
        [cell.target for cell in prepared_cells],
        "choose one with --mpi, or cells with --cells",
    )
    if request.dry_run:
        if json_out:
            write_json(planned_dataset(plan, prepared_cells), json_out)
        else:
            print_plan(plan, prepared_cells)
        return
    out = None if request.out is None else Path(request.out)
    folder = out or FOLDER / plan.name
    words = f"{library.family} {library.version}"
    # The card is passed on: it says nothing of where the files lie on this machine.
    folder_words = ["-o", _passed_on(out)] if out else []
    regenerate = ["autotune", "explore", _passed_on(Path(request.plan)), *folder_words]
    dataset = start_dataset(plan, prepared_cells, folder, shlex.join(regenerate), words)
    with Store.open(store) as database, CampaignProgress(json_out == "-") as progress:
        campaign = Campaign(
            plan, prepared_cells, dataset, database, progress, request.guard, request.budget_s
        )
        progress.left_s = campaign.left_s()
        try:
            is_finished = campaign.run()
        except KeyboardInterrupt:
            print_continuation("interrupted; every finished block is stored")
            raise
    if not is_finished:
        print_continuation("the budget is spent; every finished block is stored")
    result = vars(describe(campaign.dataset))
    document = ExploredDataset(
        **result,
        finished=is_finished,
        folder=f"{folder}",
        mpi_choice=prepared_cells[0].target.choice_row,
    )
    if write_document(document, json_out):
        print_campaign(folder, is_finished)


def _passed_on(path: Path) -> str:
    """A relative path as it is, of another one the last part."""
    return path.name if path.is_absolute() else str(path)
