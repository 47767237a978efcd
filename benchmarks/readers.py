"""Seconds of every command and page that reads a large results database, beside the imports.

    python -m benchmarks.readers [--runs 100000] [--studies 500] [--directory DIR] [--json FILE]

It writes a SQLite file with ``--studies`` studies. The largest has half of all runs, the others
share the rest; each run has two kilobytes of output and ten values read back. Each command is then
given twice in this process, and the second time counts: the first one loads the modules. A page of
``ui`` is asked for once by an application of its own, because later answers are cached.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from autotune.cli import main as autotune
from autotune.store import AppInfo, OwnerProcess, Store
from autotune.store import schema as s
from autotune.store.read_backs import keep_read_back
from autotune.store.record_columns import storable, to_columns
from autotune.store.trials import hash_of, owner_columns
from benchmarks.common import conclude, options, positive, run_benchmark, table
from benchmarks.store_speed import record_of, study_key

GOAL_S = 1.0
MODELS = ("importance", "ui importance")
"""These fit a model of up to 4,000 settings, which takes most of their time; no goal is set."""
TRIAL_RUNS = 2
"""Runs of a trial; every tenth run is one of the default."""
APPS = 20
REJECTED = 50
"""Every so-manieth run was rejected by the guard."""
HOST, TOKEN = "127.0.0.1:8000", "t" * 32


def setting_of(trial: int) -> dict[str, int]:
    """Five parameters of eight levels; each trial of a study has another setting."""
    return {f"parameter_{i}": (trial >> 3 * i) % 8 for i in range(5)}


def fill(place: str, runs: int, studies: int) -> None:
    """Write the studies with their trials and runs; the last study is the largest."""
    shares = [runs // 2 // max(studies - 1, 1)] * (studies - 1)
    with Store.open(place) as store:
        for number, share in enumerate([*shares, runs - sum(shares)]):
            app = AppInfo(f"program{number % APPS}", "bench", "0" * 64)
            study = store.study(replace(study_key(), app=app, seed=number))
            _fill_study(store, study.id, share)
            store.set_result(study.id, "interrupted", None)


def _fill_study(store: Store, study_id: int, runs: int) -> None:
    owner = owner_columns(OwnerProcess.current())
    common = {"study_id": study_id, "origin": "search", "reason": "", "attrs": "{}", **owner}
    trials = max(runs // TRIAL_RUNS, 1)
    keys = [",".join(f"{n}={v}" for n, v in setting_of(t).items()) for t in range(trials)]
    with store._database.write() as connection:
        first = connection.scalar(s.trial.select().with_only_columns(s.trial.c.id).order_by(
            s.trial.c.id.desc()).limit(1)) or 0  # fmt: skip
        rows = [
            {
                **common, "id": first + 1 + t, "number": t, "setting_key": key,
                "setting_hash": hash_of(key), "setting": _json(setting_of(t)), "state": "ok",
                "estimate": 1.0 + t % 89 / 100, "created_at": "2026-11-27T00:00:00Z",
                "finished_at": "2026-11-27T00:00:01Z",
            }
            for t, key in enumerate(keys)
        ]  # fmt: skip
        connection.execute(insert(s.trial), rows)
        values = [
            {"trial_id": first + 1 + t, "name": name, "value": str(value), "number": float(value)}
            for t in range(trials)
            for name, value in setting_of(t).items()
        ]
        connection.execute(insert(s.trial_value), values)
        connection.execute(insert(s.run), list(_runs(connection, study_id, first, keys, runs)))


def _runs(
    connection: Any, study_id: int, first: int, keys: list[str], runs: int
) -> Iterator[dict[str, Any]]:
    backs: dict[int, int | None] = {}
    for number in range(runs):
        trial = None if number % 10 == 0 else number // TRIAL_RUNS % len(keys)
        key = "default" if trial is None else keys[trial]
        record = record_of(number)
        if number % REJECTED == REJECTED - 1:
            record.state = "foreign_load"
        if number % 8 not in backs:
            backs[number % 8] = keep_read_back(connection, record.read_back)
        record = storable(record)
        yield {
            "study_id": study_id, "number": number,
            "trial_id": None if trial is None else first + 1 + trial,
            "setting_key": key, "setting_hash": hash_of(key), "launched": None,
            "phase": "default" if trial is None else "search", "block": 0, "position": 0,
            **to_columns(record), "read_back_id": backs[number % 8], "printed_id": None,
            "printed_change": None,
        }  # fmt: skip


def _json(value: object) -> str:
    import json

    return json.dumps(value)


def commands(place: str, largest: str, scratch: Path) -> dict[str, list[str]]:
    """The command lines, by name."""
    store = ["--store", place]
    return {
        "studies": ["studies", *store],
        "studies --json": ["studies", "--json", str(scratch / "studies.json"), *store],
        "show": ["show", largest, *store],
        "status": ["status", largest, *store],
        "importance": ["importance", largest, *store],
        "export csv": _export(largest, "csv", scratch, store),
        "export parquet": _export(largest, "parquet", scratch, store),
        "report": ["report", largest, "--out", str(scratch / "report.html"), "--force", *store],
        "store check --quick": ["store", "check", "--quick", *store],
    }


def _export(study: str, to: str, scratch: Path, store: list[str]) -> list[str]:
    return ["export", study, "--to", to, "--out", str(scratch / f"runs.{to}"), "--force", *store]


def pages(largest: str, others: str) -> dict[str, str]:
    """The addresses of the pages that read the database, by name."""
    study = f"/study/{largest}"
    return {
        "ui studies": "/",
        "ui studies, last page": "/?page=10",
        "ui studies by runs": "/?order=runs",
        "ui search": "/?q=program1",
        "ui running": "/running",
        "ui study": study,
        "ui importance": f"{study}/importance",
        "ui runs": f"{study}/runs",
        "ui runs, last page": f"{study}/runs?page=1000",
        "ui run": f"{study}/run/7",
        "ui compare": f"/compare?first={largest}&second={others}",
    }


def timed(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def run_command(words: list[str]) -> None:
    """Run a command; raises RuntimeError if it fails."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = autotune(list(words))
    if code not in (0, None):
        raise RuntimeError(f"{' '.join(words)}: exit code {code}: {errors.getvalue()}")


def measure(place: str, scratch: Path) -> dict[str, float]:
    """Seconds of each command and page."""
    from starlette.testclient import TestClient

    from autotune.ui.app import build

    with Store.open_read_only(place) as store:
        newest = store.studies()[:2]
    largest, other = (study.hash[:12] for study in newest)
    figures = {}
    for name, words in commands(place, largest, scratch).items():
        run_command(words)
        figures[name] = timed(lambda words=words: run_command(words))  # type: ignore[misc]
    for name, address in pages(largest, other).items():
        for _ in range(2):
            with Store.open_read_only(place) as store:
                client = TestClient(build(store, TOKEN, {HOST}), base_url=f"http://{HOST}/{TOKEN}")
                began = time.perf_counter()
                answer = client.get(f"http://{HOST}/{TOKEN}{address}")
                figures[name] = time.perf_counter() - began
                if answer.status_code != 200:
                    raise RuntimeError(f"{address}: {answer.status_code}")
    return figures


def main() -> int:
    """Print the figures."""
    parser = options(__doc__)
    parser.add_argument("--runs", type=positive, default=100_000)
    parser.add_argument("--studies", type=positive, default=500)
    parser.add_argument("--directory", type=Path, help="where to write (default: a temporary one)")
    parser.add_argument("--keep", type=Path, help="a database to write, or to use if it is there")
    given = parser.parse_args()
    os.environ.setdefault("COLUMNS", "100")
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        place = given.keep or Path(directory) / "results.db"
        if not place.exists():
            fill(str(place), given.runs, given.studies)
        seconds = measure(str(place), Path(directory))
        size = place.stat().st_size / 1e6
    table([{"what": name, "seconds": f"{value:.2f}"} for name, value in seconds.items()])
    missed = [
        f"{name}: {value:.2f}"
        for name, value in seconds.items()
        if value > GOAL_S and name not in MODELS
    ]
    figures = {"runs": given.runs, "studies": given.studies, "size_mb": size, "seconds": seconds}
    return conclude("readers", f"each at most {GOAL_S} s", missed, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
