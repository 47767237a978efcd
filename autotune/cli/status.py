"""``autotune status``: what the workers of a study do now."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import typer

from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.render import console, table, write_json
from autotune.store import Store, Study, Worker
from autotune.store.leases import LEASE_S
from autotune.study.conduct import FINISHED
from autotune.study.moved import follow
from autotune.study.result import Result
from autotune.words import (
    HEADLINES,
    UNGUARDED,
    count,
    interval,
    percent,
    seconds,
    short_setting,
)

EVERY_S = 2.0


def status(
    study: Annotated[
        str | None,
        typer.Argument(metavar="STUDY", help="Default: the newest study."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Again and again until it is over.")] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show a study's workers, the trials that run, and how far it is."""
    with (Store.open_existing if live else Store.open_to_read)(store) as opened:
        newest = opened.studies()[:1]
        if study is None and not newest:
            console().print(f"no studies in {opened.shown}", markup=False)
            return
        found = opened.get_study(newest[0].id) if study is None else opened.find_study(study)
        while True:
            found = follow(opened, opened.get_study(found.id))
            data = state_of(opened, found)
            if json_out:
                write_json(data, json_out)
            if json_out != "-":
                _print(data)
            if not live or data["status"] in FINISHED:
                return
            time.sleep(EVERY_S)


def state_of(store: Store, study: Study) -> dict[str, Any]:
    """What is printed, as JSON types."""
    now = store.get_study(study.id)
    trials = store.trials(study.id)
    clock = store.clock()
    running = [
        {
            "trial": t.number,
            "setting": t.setting,
            "host": t.owner.host,
            "pid": t.owner.pid,
            "seen_s": None if t.heartbeat_at is None else round(clock - t.heartbeat_at, 1),
            "alive": not t.owner.surely_dead()
            and (t.heartbeat_at is None or clock - t.heartbeat_at <= LEASE_S),
        }
        for t in trials
        if t.state == "running"
    ]
    done = [t for t in trials if t.estimate is not None and t.state == "ok"]
    best = min(done, key=lambda t: t.estimate or 1.0, default=None)
    workers = store.workers(study.id)
    proving = store.role_holder(study.id, "finish")
    lost = [_worker(w) for w in workers if w.lost]
    return {
        "schema": "autotune-status-1",
        "study": now.hash[:12],
        "status": _status(now, running, len(lost) < len(workers), proving is not None),
        "result": _result(now),
        "workers": [_worker(w) for w in workers if not w.lost],
        "lost": lost,
        "joinable": now.request is not None,
        "guard": now.key.guarded,
        "trials": dict(Counter(t.state for t in trials)),
        "running": running,
        "proving": proving,
        "best": None if best is None else {"ratio": best.estimate, "setting": best.setting},
        "runs_by_place": store.run_counts(study.id, "place"),
    }


def _status(study: Study, running: list[dict[str, Any]], workers: bool, proving: bool) -> str:
    """What is done now, where anything is; else how the study ended.

    One worker's failure is not the study's while others go on.
    """
    if study.status in FINISHED:
        return study.status
    if proving:
        return "proving"
    return "searching" if workers or any(row["alive"] for row in running) else study.status


def _result(study: Study) -> dict[str, Any] | None:
    """The answer of a search that has one: its status, the setting that is named, and its gain."""
    if study.result is None or study.status not in FINISHED:
        return None
    if "recommended" not in study.result:
        return None
    answer = Result.from_json(study.result)
    return {
        "status": answer.status,
        "recommended": answer.recommended.to_json(),
        "gain": answer.gain,
        "gain_ci95": None if answer.gain_ci is None else list(answer.gain_ci),
    }


def _worker(worker: Worker) -> dict[str, Any]:
    return {
        "host": worker.owner.host,
        "pid": worker.owner.pid,
        "seen_s": round(worker.seen_s, 1),
    }


def _print(data: dict[str, Any]) -> None:
    out = console()
    counts = ", ".join(f"{count} {state}" for state, count in data["trials"].items())
    out.print(f"study {data['study']}: {data['status']}; trials: {counts or 'none'}", markup=False)
    if not data["guard"] and not data["result"]:
        out.print(f"{UNGUARDED}: nothing is proven by it", markup=False)
    rows = [
        [
            str(row["trial"]),
            short_setting(row["setting"]),
            f"{row['host']}:{row['pid']}",
            _seen(row) if row["alive"] else "lost",
        ]
        for row in data["running"]
    ]
    if rows:
        out.print(table("running", [">trial", "setting", "worker", ">last seen before"], rows))
    if data["proving"]:
        out.print(f"{data['proving']} proves what was found", markup=False)
    for row in data["lost"] if data["result"] is None else ():
        out.print(
            f"lost: the worker {row['host']}:{row['pid']}, last seen {seconds(row['seen_s'])} ago; "
            "nothing that it finished is",
            markup=False,
        )
    if data["joinable"] and data["status"] not in (*FINISHED, "searching", "proving"):
        out.print(
            f"nobody works on it now; it goes on with: autotune worker {data['study']}",
            markup=False,
        )
    if data["result"]:
        _print_answer(data["result"])
    elif data["best"]:
        out.print(
            f"best so far (not proven): x{data['best']['ratio']:.3f} the default's time, "
            f"{short_setting(data['best']['setting'])}",
            markup=False,
        )
    for place, number in data["runs_by_place"].items():
        out.print(f"{count(number, 'run')} on {place}", markup=False)


def _print_answer(answer: dict[str, Any]) -> None:
    out = console()
    out.print(HEADLINES[answer["status"]], markup=False)
    if answer["gain"] is not None:
        ends = interval(tuple(answer["gain_ci95"])) if answer["gain_ci95"] else ""
        named = short_setting(answer["recommended"])
        out.print(f"{named}: {percent(answer['gain'])} ({ends})", markup=False)


def _seen(row: dict[str, Any]) -> str:
    return "-" if row["seen_s"] is None else seconds(row["seen_s"])
