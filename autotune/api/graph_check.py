"""The check of a program's graphs: what its regions touch, against what they declare.

The program records it itself, because an environment variable asks for it
(``runner/runtimes/check``); this module runs it under several schedules and puts the results into
words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from autotune.document import Document
from autotune.errors import WorkError
from autotune.notes import Note, Say, lock_notes
from autotune.space import Setting, Space
from autotune.targets.metric import failure_lines
from autotune.targets.target import Target
from runner.errors import RunnerError
from runner.files import read_user_file
from runner.lock import MachineLock
from runner.trace.run import with_variables
from runner.types import RunRecord

FILE, SEED = "AUTOTUNE_GRAPH_CHECK", "AUTOTUNE_GRAPH_SEED"
"""Environment variables of a checked run: the file for its results, and the schedule."""
_LARGEST = 64 << 20
Verdict = Literal["needed", "superfluous", "implied", "untested"]
_STRENGTH: tuple[Verdict, ...] = ("needed", "superfluous", "implied", "untested")


class Schedule(Document):
    """A run."""

    seed: int | None
    """Of the random order; null: the order of the source."""
    state: str
    reason: str


class DeclaredDependency(Document):
    """A declared dependency.

    ``verdict``: ``needed`` (a conflict would have no order without it), ``superfluous`` (the two
    regions have no memory in common), ``implied`` (others give the same order), ``untested`` (one
    of the two did nothing in these runs).
    """

    model: Literal["mate", "tarragon"]
    graph: str
    """The graph's name, or the class of its tasks."""
    region: str
    file: str
    line: int
    dependency: str
    verdict: Verdict


class GraphCheck(Document):
    """What a check of graphs has shown."""

    program: list[str]
    ranks: int
    """Number of processes."""
    schedules: list[Schedule]
    findings: list[Note]
    """What is wrong with the graphs; empty if nothing is."""
    dependencies: list[DeclaredDependency]
    conflicts: int
    """Pairs of executions that use the same memory, in the first run."""


def check_graphs(
    target: Target, space: Space | None, setting: Setting, schedules: int, tell: Say
) -> GraphCheck:
    """Run the program under several schedules, and judge its graphs.

    Raises WorkError if it fails before its graphs have ended, or has none.
    """
    spec = target.spec(space, setting)
    seeds = [None, *range(1, schedules)]
    records: list[RunRecord] = []
    answers: list[dict[str, Any]] = []
    lock = MachineLock("shared", tell=lock_notes(tell))
    with lock, target.runner(False) as runner, tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            file = Path(folder, f"{seed}.json")
            variables = {FILE: str(file), SEED: "" if seed is None else str(seed)}
            launch = with_variables(spec, runner.adapter.library, variables)
            record = runner.run(dataclasses.replace(launch, watch_windows=False))
            records.append(record)
            answers.append(_answer(file, record, target))
    findings = _races(answers) + _superfluous(answers) + _differences(answers, seeds)
    findings += _failures(records, seeds)
    return GraphCheck(
        program=list(target.program),
        ranks=target.ranks,
        schedules=[
            Schedule(seed=seed, state=record.state, reason=record.reason)
            for seed, record in zip(seeds, records, strict=True)
        ],
        findings=findings,
        dependencies=[DeclaredDependency(**row) for row in _dependencies(answers)],
        conflicts=answers[0]["conflicts"],
    )


def _answer(file: Path, record: RunRecord, target: Target) -> dict[str, Any]:
    """The results of a run; raises WorkError."""
    answer: dict[str, Any] = {"graphs": []}
    with contextlib.suppress(OSError, RunnerError, ValueError):
        answer = json.loads(read_user_file(file, _LARGEST))
    if not answer["graphs"]:
        if record.valid:
            raise WorkError(
                f"{target.app.name} has run no graph of MATE and no compiled tasks of Tarragon, "
                "so there is nothing to check: give the options with which it uses one (such as "
                "--variant mate)",
                code="graph_check.no_graph",
            )
        lines = "".join(f"\n{line}" for line in failure_lines(record))
        raise WorkError(
            f"{target.app.name} failed before its graphs had ended: {record.reason}{lines}",
            code="graph_check.run_fails",
        )
    return answer


def _races(answers: Sequence[Mapping[str, Any]]) -> list[Note]:
    races: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for answer in answers:
        for race in answer["races"]:
            sides = race["first"]["region"], race["second"]["region"]
            races.setdefault((race["kind"], race["graph"], race["dependency"], *sides), race)
    return [_race(race) for race in races.values()]


def _race(race: Mapping[str, Any]) -> Note:
    first, second, memory = race["first"], race["second"], race["memory"]
    model = race["model"]
    both = f"{_side(first, model)} and {_side(second, model)} use {memory}, and nothing orders them"
    region, dependency = race["region"], race["dependency"]
    own = second if second["region"] == region else first
    place = f"{_shown(own['file'])}:{own['line']}: {_region(race)}"
    if race["kind"] == "missing":
        words = f"{place} needs {_dependency(race)}: {both}"
        return Note("graph_check.missing", words, race)
    if race["kind"] == "stranger":
        words = (
            f'{place} needs the dependency "{dependency}" on a rank that is not its neighbour: '
            f"{both}. Rank {second['rank']} has to call ctx.add_local_neighbor({first['rank']})"
        )
        return Note("graph_check.not_neighbours", words, race)
    if race["kind"] == "same":
        words = (
            f"{place}: {both}. No dependency orders a region and the same one of another rank in "
            "one iteration: give each rank memory of its own, or divide the region in two"
        )
        return Note("graph_check.same_iteration", words, race)
    if race["kind"] == "own" and model == "tarragon":
        words = (
            f"{place} uses {memory} while its message is under way: in step s the message of edge "
            "n is in inputs[2 * n + (s - delay) % 2] and goes to outputs[2 * n + s % 2]"
        )
        return Note("graph_check.own_message", words, race)
    if race["kind"] == "own":
        words = (
            f"{place} uses {memory} while a message that it has started itself is under way: move "
            "this to another region, which depends on this one"
        )
        return Note("graph_check.own_message", words, race)
    words = f"{place}: {both}. A barrier or a wait between them would"
    return Note("graph_check.outside", words, race)


def _region(row: Mapping[str, Any]) -> str:
    """A region of MATE, or a task of Tarragon."""
    return str(row["region"]) if row["model"] == "tarragon" else f"region {row['region']}"


def _dependency(row: Mapping[str, Any]) -> str:
    """A dependency of MATE, or an edge of Tarragon."""
    text = row["dependency"]
    return f"the {text}" if row["model"] == "tarragon" else f'the dependency "{text}"'


def _side(side: Mapping[str, Any], model: str) -> str:
    if model == "tarragon":
        where = f"{_shown(side['file'])}:{side['line']}"
        what = "a message of " if side["kind"] == "message" else ""
        return f"{what}{side['region']} (step {side['iteration']}, {where})"
    rank = f"of local rank {side['rank']}"
    if not side["region"]:
        return f"a message {rank} outside of the graph"
    what = "a message of " if side["kind"] == "message" else ""
    where = f"{_shown(side['file'])}:{side['line']}"
    return f"{what}{side['region']} {rank} (iteration {side['iteration']}, {where})"


def _shown(file: str) -> str:
    """The file as a user of this directory would name it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


def _dependencies(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The declared dependencies, each with its strongest verdict."""
    best: dict[tuple[str, str, str], dict[str, Any]] = {}
    for answer in answers:
        for row in answer["dependencies"]:
            key = row["graph"], row["region"], row["dependency"]
            old = best.setdefault(key, row)
            if _STRENGTH.index(row["verdict"]) < _STRENGTH.index(old["verdict"]):
                best[key] = row
    return list(best.values())


def _superfluous(answers: Sequence[Mapping[str, Any]]) -> list[Note]:
    return [
        Note(
            "graph_check.superfluous",
            f"{_shown(row['file'])}:{row['line']}: {_region(row)} does not need "
            f"{_dependency(row)}: in these runs the two have no memory in common, and no other "
            "order needs it",
            row,
        )
        for row in _dependencies(answers)
        if row["verdict"] == "superfluous"
    ]


def _differences(answers: Sequence[Mapping[str, Any]], seeds: Sequence[int | None]) -> list[Note]:
    """A note if a schedule has left other values in the memory of the regions."""
    first = answers[0]["contents"]
    for answer, seed in zip(answers[1:], seeds[1:], strict=True):
        names = sorted(
            {
                name
                for a, b in zip(first, answer["contents"], strict=False)
                for name in a.keys() | b.keys()
                if a.get(name) != b.get(name)
            }
        )
        if names:
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            words = (
                f"the results depend on the schedule: {shown} end with other values under seed "
                f"{seed} than in the order of the source"
            )
            return [Note("graph_check.results_differ", words, {"seed": seed, "names": names})]
    return []


def _failures(records: Sequence[RunRecord], seeds: Sequence[int | None]) -> list[Note]:
    return [
        Note(
            "graph_check.run_failed",
            ("the run in the order of the source" if seed is None else f"the run under seed {seed}")
            + f" is not right: {record.reason or record.state}",
            {"seed": seed, "state": record.state},
        )
        for seed, record in zip(seeds, records, strict=True)
        if not record.valid and record.state != "no_metric"
    ]
