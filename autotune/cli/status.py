"""``autotune status``: what the workers of a study do now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from autotune.api.status import (
    ExpiredPublication,
    RunningTrial,
    SearchAnswer,
    StudyStatus,
    expired_publications,
    state_of,
)
from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.reading import reading
from autotune.store.keys import SCREENING
from autotune.study.result import FINISHED, follow_moved_study
from autotune.study.screening_summary import screening_words
from autotune.terminal.render import print_line, print_table, write_json
from autotune.wording import HEADLINES, UNGUARDED, count, interval, percent, seconds, short_setting

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

    Published files that have expired are named, with the commands for them.
    """
    expired = expired_publications()
    with reading(store, live) as opened:
        newest = [line for line in opened.studies() if line.strategy != SCREENING][:1]
        if study is None and not newest:
            if json_out:
                write_json(None, json_out)
            if json_out != "-":
                print_line(f"no studies in {opened.label}")
                _print_expired(expired)
            return
        found = opened.get_study(newest[0].id) if study is None else opened.find_study(study)
        while True:
            found = follow_moved_study(opened, opened.get_study(found.id))
            data = state_of(opened, found).model_copy(update={"expired": expired})
            if json_out:
                write_json(data, json_out)
            if json_out != "-":
                _print(data)
            if not live or data.status in FINISHED:
                return
            time.sleep(EVERY_S)


def _print(data: StudyStatus) -> None:
    counts = ", ".join(f"{count} {state}" for state, count in data.trials.items())
    print_line(f"study {data.study}: {data.status}; trials: {counts or 'none'}")
    if not data.guard and not data.result:
        print_line(f"{UNGUARDED}: this study proves nothing")
    rows = [
        [
            str(row.trial),
            short_setting(row.setting),
            f"{row.host}:{row.pid}",
            _seen(row) if row.alive else "lost",
        ]
        for row in data.running
    ]
    if rows:
        print_table("running", [">trial", "setting", "worker", ">last seen (ago)"], rows)
    if data.proving:
        print_line(f"{data.proving} runs the proof")
    for row in data.lost if data.result is None else ():
        print_line(
            f"lost: worker {row.host}:{row.pid}, last seen {seconds(row.seen_s)} "
            "ago; the runs that it finished are stored"
        )
    if data.joinable and data.status not in (*FINISHED, "searching", "proving"):
        print_line(f"no worker is active; to continue: autotune worker {data.study}")
    if data.result:
        _print_answer(data.result)
    elif data.best:
        print_line(
            f"best so far (not proven): {data.best.ratio:.3f} times the default's "
            f"time, {short_setting(data.best.setting)}"
        )
    if data.fidelity is not None:
        print_line(screening_words(data.fidelity))
    for place, number in data.runs_by_place.items():
        print_line(f"{count(number, 'run')} on {place}")
    _print_expired(data.expired)


def _print_expired(files: Sequence[ExpiredPublication]) -> None:
    """Print expired files with their commands, which are made to be copied and not wrapped."""
    for file in files:
        print_line(f"{file.path}: {file.words}", whole=True)
        for what, line in file.commands.items():
            print_line(f"  to {what}: {line}", whole=True)


def _print_answer(answer: SearchAnswer) -> None:
    print_line(HEADLINES[answer.status])
    if answer.gain is not None:
        ends = interval(answer.gain_ci95) if answer.gain_ci95 else ""
        named = short_setting(answer.recommended)
        print_line(f"{named}: {percent(answer.gain)} ({ends})")


def _seen(row: RunningTrial) -> str:
    return "-" if row.seen_s is None else seconds(row.seen_s)
