"""Terminal output of the progress of a study."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.api.status import ExpiredPublication, RunningTrial, SearchAnswer, StudyStatus
from autotune.study.screening_summary import screening_words
from autotune.study.study_status import FINISHED
from autotune.terminal.render import print_line, print_table
from autotune.wording import HEADLINES, UNGUARDED, count, interval, percent, seconds, short_setting


def print_status(data: StudyStatus) -> None:
    """Print what the workers of a study do now, and its answer so far."""
    counts = ", ".join(f"{count} {state}" for state, count in data.trials.items())
    print_line(f"study {data.study}: {data.status}; trials: {counts or 'none'}")
    if not data.guard and not data.result:
        print_line(f"{UNGUARDED}: this study proves nothing")
    rows = [
        [
            str(row.trial),
            short_setting(row.setting),
            f"{row.host}:{row.pid}",
            _age(row) if row.alive else "lost",
        ]
        for row in data.running
    ]
    if rows:
        print_table("running", [">trial", "setting", "worker", ">last seen (ago)"], rows)
    if data.proving:
        print_line(f"{data.proving} runs the proof")
    for worker in data.workers:
        if worker.state == "waiting_for_lock":
            print_line(
                f"worker {worker.host}:{worker.pid} waits for the machine lock: another "
                "measurement has its CPUs"
            )
    for row in data.lost if data.result is None else ():
        print_line(
            f"lost: worker {row.host}:{row.pid}, last seen {seconds(row.seen_s)} "
            "ago; the runs that it finished are stored"
        )
    if data.joinable and data.status not in (*FINISHED, "searching", "proving", "waiting"):
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
    print_expired(data.expired)


def print_expired(files: Sequence[ExpiredPublication]) -> None:
    """Print expired files with their commands, which are made to be copied and not wrapped."""
    for file in files:
        print_line(f"{file.path}: {file.words}", whole=True)
        for what, line in file.commands.items():
            print_line(f"  to {what}: {line}", whole=True)


def _print_answer(answer: SearchAnswer) -> None:
    print_line(HEADLINES[answer.status])
    if answer.gain is not None:
        ends = interval(answer.gain_ci95) if answer.gain_ci95 else ""
        setting = short_setting(answer.recommended)
        print_line(f"{setting}: {percent(answer.gain)} ({ends})")


def _age(row: RunningTrial) -> str:
    return "-" if row.seen_s is None else seconds(row.seen_s)
