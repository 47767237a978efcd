"""``autotune mate check`` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.api.graph_check import GraphCheck
from autotune.cli import main
from autotune.schemas import load_schema

PROGRAM = """
import argparse
import numpy as np
from runner.runtimes import mate

graph = mate.Graph("line")


@graph.region(depends=[{depends}])
def compute(state, i):
    old, new = state.fields[i % 2], state.fields[(i + 1) % 2]
    new[state.low : state.high] = old[state.low - 1 : state.high - 1]


class State:
    def __init__(self, ctx, fields):
        self.ctx, self.fields = ctx, fields
        self.low = 1 + 4 * ctx.local_rank
        self.high = self.low + 4


async def main(ctx):
    fields = await ctx.local_bcast([np.arange(9.0), np.arange(9.0)])
    ctx.add_local_neighbor(1 - ctx.local_rank)
    if {graphs}:
        await ctx.execute(graph, 4, state=State(ctx, fields))


parser = argparse.ArgumentParser()
mate.add_arguments(parser)
with mate.errors_once("line"):
    config = mate.from_arguments(mate.parse_args(parser))
    mate.run(main, config, comm=mate.world(config))
"""
WORDS = ["--ranks-per-process", "2", "--affinity", "none"]


def check(
    capfd: pytest.CaptureFixture[str], options: list[str], depends: str, graphs: bool = True
) -> tuple[int, str, str]:
    Path("line.py").write_text(PROGRAM.format(depends=depends, graphs=graphs))
    program = [sys.executable, "line.py", *WORDS]
    code = main(["mate", "check", "--ranks", "1", *options, "--", *program])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.mpi
def test_a_race_is_named_with_its_lines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--schedules", "2", "--json", "check.json"]
    code, out, _ = check(capfd, options, "")
    assert code == 1
    assert out == snapshot
    document = json.loads(Path("check.json").read_text())
    assert document == GraphCheck.model_validate(document).model_dump(by_alias=True)
    (race, *_) = document["findings"]
    assert race["code"] == "graph_check.missing"
    assert race["data"]["dependency"] == "compute*@"
    assert race["data"]["first"]["line"] == 9


@pytest.mark.mpi
@pytest.mark.slow
def test_a_right_graph_and_a_program_without_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = check(capfd, ["--json", "-"], '"compute*@"')
    assert (code, json.loads(out)["findings"]) == (0, [])
    code, _, err = check(capfd, ["--schedules", "1"], "", graphs=False)
    assert code == 1
    assert "autotune [graph_check.no_graph]: " in err


def test_the_schema_is_listed() -> None:
    assert "findings" in load_schema("mate-check")["properties"]
