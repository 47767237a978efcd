"""``autotune status``: what the workers of a study do now."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

import typer

from autotune.api.status import expired_publications, state_of
from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.reading import reading
from autotune.store.keys import SCREENING
from autotune.study.study_status import FINISHED
from autotune.terminal.render import print_line, write_document
from autotune.terminal.status import print_expired, print_status

EVERY_S = 2.0


def status(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="Study: its number or the first digits of its hash. Default: the newest study.",
            autocompletion=completion.studies,
        ),
    ] = None,
    live: Annotated[
        bool, opt("--live", "Repeat the display every 2 seconds until the study has ended.")
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show the progress of a study: its workers, its running trials, the best setting so far.

    It also names published files that have expired, with the commands for them.
    """
    expirations = expired_publications()
    with reading(store, live) as database:
        newest = [line for line in database.studies() if line.strategy != SCREENING][:1]
        if study is None and not newest:
            if write_document(None, json_out):
                print_line(f"no studies in {database.label}")
                print_expired(expirations)
            return
        record = database.get_study(newest[0].id) if study is None else database.find_study(study)
        while True:
            record = database.follow_moved(database.get_study(record.id))
            data = replace(state_of(database, record), expired=expirations)
            if write_document(data, json_out):
                print_status(data)
            if not live or data.status in FINISHED:
                return
            time.sleep(EVERY_S)
