"""Claims: their tables, their runs, what is kept of these, and what the figures say."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import UsageError, WorkError
from benchmarks import claim
from benchmarks.compiled import NoCompiler
from benchmarks.harness.bench import RunLog, interleaved
from benchmarks.harness.contest import tune
from benchmarks.harness.figures import require_same, rows_of, slow_lines, speedup
from benchmarks.harness.launches import Place
from benchmarks.harness.table import CLAIMS, Line, Table, claim_of, compute, names, read_claim
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import RunRecord
from tests.case_table import case_table

TEXT = """
title = "an example"
blocks = 2
metric = "json:s"
[values]
sizes = [1, 2, 4]
[[table]]
name = "a {kind}"
each.kind = ["x", "y"]
within = 0.5
processes = "cores // workers"
[[table.line]]
name = "{processes} x {workers}, {word}"
module = "m"
each.workers = "sizes"
where = "workers <= cores and not_four != workers"
let.not_four = "2 + 2"
let.word = { of = "workers", 1 = "one", else = "more" }
words = "--kind {kind} --of {workers}"
[[table.line]]
name = "C"
workers = 1
source = "cannon.c"
"""


def example(text: str = TEXT, **values: Any) -> Any:
    return claim_of("example", tomllib.loads(text), {"cores": 4, **values})


def test_each_combination_is_a_line_with_its_values() -> None:
    found = example(TEXT.replace(" and not_four != workers", ""))
    assert [(one.name, one.within) for one in found.tables] == [("a x", 0.5), ("a y", 0.5)]
    lines = found.tables[1].lines
    assert [line.name for line in lines] == ["4 x 1, one", "2 x 2, more", "1 x 4, more", "C"]
    assert lines[1].words == "--kind y --of 2"
    assert [(line.processes, line.workers) for line in lines] == [(4, 1), (2, 2), (1, 4), (4, 1)]
    assert {line.metric for line in lines} == {"json:s"}


@case_table(
    ("old", "new"),
    [
        ('name = "C"', 'name = "C"\nprocess = 2'),
        ("within = 0.5", "wihtin = 0.5"),
        ('where = "workers', 'where = "unknown'),
        ("cores // workers", "cores.real"),
        ("cores // workers", "__import__('os')"),
        ("2 + 2", "2 ** 2"),
    ],
)
def test_what_a_table_does_not_know_is_refused(old: str, new: str) -> None:
    with pytest.raises(UsageError) as refused:
        example(TEXT.replace(old, new))
    assert refused.value.code == "benchmark.claim"


def test_expressions() -> None:
    assert compute("a * 2 + 7 // 2 - 5 % 3 == 7", {"a": 3})
    assert compute("a == 1 or b == 'x' and a < 4", {"a": 3, "b": "x"})


@case_table("cores", [1, 2, 16])
@case_table("name", names())
def test_claims_have_lines_of_different_names(name: str, cores: int) -> None:
    found = read_claim(name, {"cores": cores})
    for one in found.tables:
        listed = [line.name for line in one.lines]
        assert len(set(listed)) == len(listed) > 1
        assert all(line.against in ("", *listed) for line in one.lines)
        for line in one.lines:
            assert sum(map(bool, (line.app, line.module, line.source))) == 1
            assert line.processes >= 1
            assert not line.source or (CLAIMS.parent / "references" / line.source).is_file()


def test_every_key_runs_once_in_each_block_in_an_order_of_its_own() -> None:
    calls: list[tuple[str, int]] = []
    found = interleaved("abcdef", lambda key, block: calls.append((key, block)), 3, 7)
    assert {key: len(own) for key, own in found.items()} == dict.fromkeys("abcdef", 3)
    assert Counter(calls).most_common(1)[0][1] == 1
    assert [block for _, block in calls] == sorted(block for _, block in calls)
    orders = [[key for key, number in calls if number == block] for block in range(3)]
    assert len({*map(tuple, orders)}) > 1
    calls.clear()
    interleaved("abcdef", lambda key, block: calls.append((key, block)), 2, 7)
    assert [key for key, _ in calls] == orders[0] + orders[1]


def test_kept_runs_are_not_run_again(tmp_path: Path) -> None:
    file, runs = tmp_path / "runs", []

    def run() -> RunRecord:
        runs.append(1)
        return RunRecord("ok", wall_s=float(len(runs)), extra={"x": len(runs)})

    kept = RunLog(file, {"commit": "a"})
    first = [kept.run(place, run) for place in ("p", "q")]
    with file.open("a") as cut:
        cut.write('{"place": "r", "rec')
    again = RunLog(file, {"commit": "a"})
    assert [again.run(place, run) for place in ("p", "q")] == first
    assert len(runs) == 2
    with pytest.raises(UsageError) as refused:
        RunLog(file, {"commit": "b"})
    assert refused.value.code == "benchmark.kept"


def test_a_run_after_one_that_was_cut_off_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    RunLog(file, {})
    with file.open("a") as cut:
        cut.write('{"place": "r", "rec')
    RunLog(file, {}).run("s", lambda: RunRecord("ok", wall_s=2.0))

    def not_again() -> RunRecord:
        raise AssertionError

    assert RunLog(file, {}).run("s", not_again).wall_s == pytest.approx(2.0)


def records(*times: float, **extra: Any) -> list[RunRecord]:
    return [RunRecord("ok", wall_s=time, extra=extra) for time in times]


def test_speed_up_and_bound() -> None:
    assert str(speedup([2.0] * 8, [1.0] * 8)) == "2 (2 .. 2)"
    assert str(speedup([2.0] * 5, [1.0] * 5)).endswith("*")
    lines = (Line("first", module="m"), Line("other", module="m", against="first"))
    table = Table("t", lines, slowest=1.2, show=("x",))
    runs = [records(*[1.0] * 8, x=1), records(*[1.3] * 8, x=2)]
    assert len(slow_lines(table, runs)) == 1
    assert slow_lines(table, [runs[0], runs[0]]) == []
    first, other = rows_of(table, runs)
    assert (first["speed-up"], first["of its own"], other["x"]) == ("1", "1", "2")
    assert other["of its own"] == other["speed-up"]


def test_lines_that_do_not_the_same_work_are_an_error() -> None:
    lines = (Line("C", key="sum"), Line("application", key="energy"))
    table = Table("t", lines, within=1e-9)
    require_same(table, [records(1.0, sum=2.0), records(1.0, energy=2.0 + 1e-10)])
    for wrong in (records(1.0, energy=math.nextafter(2.1, 3)), records(1.0, sum=2.0)):
        with pytest.raises(WorkError):
            require_same(table, [records(1.0, sum=2.0), wrong])


def test_the_fastest_setting_that_works_is_tuned() -> None:
    times = {"a": [3.0], "b": [1.0], "c": [2.0, 9.0, 9.0, 9.0], "d": [4.0], "e": [2.5]}
    calls: Counter[str] = Counter()

    def seconds(name: str, setting: str) -> float:
        calls[setting] += 1
        if setting == "b":
            raise WorkError("first line\nits residual", code="benchmark.fails")
        own = times[setting]
        return own[min(calls[setting], len(own)) - 1]

    found = tune({"one": [*times]}, seconds, 1)["one"]
    # Of five settings two run again: c looked best once, and is not.
    assert (found.tuned, found.tried, found.left_out) == ("e", 5, {"b": "its residual"})
    assert calls == {"a": 1, "b": 1, "c": 4, "d": 1, "e": 4}
    with pytest.raises(WorkError):
        tune({"one": ["b"]}, seconds, 1)


def tiny(name: str) -> dict[str, Any]:
    """A claim on the inputs for tests."""
    data = tomllib.loads((CLAIMS / f"{name}.toml").read_text())
    for one in data["table"]:
        one["each"]["input"] = ["tiny"]
    return data


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("table", "processes"),
    [
        (0, 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [(0, 6), (1, 2), (1, 6), (2, 2), (2, 6)]
        ),
    ],
)
def test_an_application_and_its_reference_compute_the_same(
    library: Library, tmp_path: Path, table: int, processes: int
) -> None:
    one = claim_of("references", tiny("references"), {"processes": processes}).tables[table]
    place = Place.of(mpi=str(library.launcher))
    try:
        specs = [place.launch(line, tmp_path) for line in one.lines]
    except NoCompiler as error:
        pytest.skip(str(error))
    with Runner(adapter(library), guard=False) as runner:
        runs = [[runner.run(spec)] for spec in specs]
    assert [own[0].state for own in runs] == ["ok", "ok"], [own[0].reason for own in runs]
    require_same(one, runs)


@pytest.mark.mpi
def test_the_command_goes_on_where_it_stopped(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(tmp_path / "lock"))  # the tests hold the other one
    out, keep = tmp_path / "figures.json", tmp_path / "runs"
    words = ["mate_threads", "--lines", "1 workers, 1 pieces", "--blocks", "1", "--no-guard"]
    words += ["--keep", str(keep), "--json", str(out), "--mpi", str(library.launcher)]
    monkeypatch.setattr(sys, "argv", ["claim.py", *words])
    assert claim.main() == 0
    first = keep.read_text()
    assert claim.main() == 0
    assert keep.read_text() == first
    found = json.loads(out.read_text())
    assert {"commit", "command", "fingerprint", "date"} <= found.keys()
    (one,) = found["tables"].values()
    assert [row["line"] for row in one["rows"]] == ["flat MPI", "1 workers, 1 pieces"]
    assert all(len(own) == 1 and own[0]["value_s"] > 0 for own in one["runs"].values())
    assert one["speed-ups"]["flat MPI"]["value"] == pytest.approx(1)
