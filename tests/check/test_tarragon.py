"""Graphs of compiled Tarragon tasks in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.runtimes import tarragon
from runner.runtimes.check import report, wanted

STEPS, TASKS, CELLS = 5, 3, 4


class Shared(tarragon.GridTask):
    """Cells of a line that the tasks share; edges only order the steps."""

    def __init__(self, number: int, fields: list[Any]) -> None:
        super().__init__(STEPS)
        self.fields = fields
        self.low = 1 + number * CELLS
        self.high = self.low + CELLS

    def compute(self, step: int) -> None:
        old, new = self.fields[step % 2], self.fields[(step + 1) % 2]
        for k in range(self.low, self.high):
            new[k] = 0.5 * old[k] + 0.25 * (old[k - 1] + old[k + 1])


class Sending(tarragon.GridTask):
    """A value that goes to the next task; ``late`` 1 is right, 0 finds the wrong buffer."""

    def __init__(self, late: int) -> None:
        super().__init__(STEPS)
        self.late = late
        self.value = np.ones(1)

    def compute(self, step: int) -> None:
        if step > 0:
            self.value[0] += self.inputs[(step - self.late) % 2][0]
        self.outputs[step % 2][0] = self.value[0]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(make: Any, edges: list[tuple[int, int]], size: int) -> dict[str, Any]:
        file = tmp_path / "check.json"
        monkeypatch.setattr(report, "_results", report.Results())
        monkeypatch.setenv(wanted.FILE, str(file))
        runtime = tarragon.Tarragon(None, tarragon.Config(pinning="none"))
        graph = tarragon.VectorGraph(runtime, make, tarragon.IdentityMap(TASKS))
        for source, target in edges:
            graph.task(source).connect(target, max_size=size)
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
        answer: dict[str, Any] = json.loads(file.read_text())
        return answer

    return run


LINE = [(0, 1), (1, 0), (1, 2), (2, 1)]


def line() -> Any:
    fields = [np.arange(2.0 + TASKS * CELLS), np.zeros(2 + TASKS * CELLS)]
    return lambda number: Shared(number, fields)


def test_a_right_graph_has_no_findings(check: Any) -> None:
    answer = check(line(), LINE, 0)
    assert answer["races"] == []
    assert {row["verdict"] for row in answer["dependencies"]} == {"needed"}
    assert len(answer["dependencies"]) == len(LINE)


def test_a_missing_edge_is_named(check: Any) -> None:
    answer = check(line(), LINE[:2] + LINE[3:], 0)
    (race, *_) = answer["races"]
    assert (race["kind"], race["model"]) == ("missing", "tarragon")
    assert {race["first"]["region"], race["second"]["region"]} == {"task 1", "task 2"}
    code = Shared.__dict__["compute"].__code__
    assert (race["first"]["file"], race["first"]["line"]) == (__file__, code.co_firstlineno)


def test_an_edge_between_strangers_is_superfluous(check: Any) -> None:
    answer = check(line(), [*LINE, (0, 2)], 0)
    rows = [row for row in answer["dependencies"] if row["verdict"] == "superfluous"]
    (row,) = rows
    assert row["region"][-1] == "2"
    assert row["dependency"].split()[3] == "0"  # the sender


def test_the_wrong_buffer_is_named(check: Any) -> None:
    ring = [(0, 1), (1, 2), (2, 0)]
    assert check(lambda number: Sending(1), ring, 8)["races"] == []
    races = check(lambda number: Sending(0), ring, 8)["races"]
    assert races
    assert {race["memory"].partition("[")[0] for race in races} <= {"inputs", "outputs"}
