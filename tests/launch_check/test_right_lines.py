"""No alarm on right lines: those of the documentation and of shipped applications."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.check.gather import Start, gather
from autotune.check.launch_facts import LaunchFacts, RankFacts
from autotune.check.registry import examine
from autotune.check.study_check import StudyCheck
from autotune.config.find import list_configs
from autotune.errors import AutotuneError
from autotune.notes import Note
from autotune.targets.request import TargetRequest
from autotune.targets.wrapped_launcher import is_launcher, split_wrappers
from runner.errors import RunnerError

ROOT = Path(__file__).parents[2]
LARGE = frozenset(range(128))
"""The CPUs of a node that has a core for each rank of every line."""


def _lines_of_pages() -> Iterator[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            if re.match(r"    \S|autotune ", line) or "`" not in line:
                yield line.partition("    #")[0].strip()


def _launch_lines() -> list[str]:
    """The launch lines of the documentation, without what ``autotune`` before them has."""
    lines = {}
    for line in _lines_of_pages():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        if words[:1] in (["autotune"], ["$"]) and "--" in words:
            words = words[words.index("--") + 1 :]
        _, launch = split_wrappers(words)
        known = not any("$" in word or word in ("<", "...", "|", "NAME") for word in launch)
        if len(launch) > 2 and is_launcher(launch[0]) and known:
            lines[shlex.join(words)] = None
    return list(lines)


LINES = _launch_lines()


def _on_large_node(facts: LaunchFacts) -> LaunchFacts:
    """The facts on a node with cores for all, whose ranks have one each."""
    node = replace(facts.node, cpus=LARGE, online_cpus=LARGE, quota=None, jobs=())
    cores = [frozenset({number}) for number in range(facts.rank_count or 1)]
    ranks = tuple(
        RankFacts(number, cpus=cpus, threads=(cpus,), world_size=len(cores))
        for number, cpus in enumerate(cores)
    )
    return replace(facts, node=node, ranks=ranks, slots=None)


def test_the_documentation_has_launch_lines() -> None:
    assert len(LINES) >= 50


def test_lines_of_the_documentation_are_right() -> None:
    alarms = {}
    for line in LINES:
        facts = _on_large_node(gather(shlex.split(line), start=Start.NONE))
        codes = [finding.code for finding in examine(facts)]
        if codes:
            alarms[line] = codes
    assert alarms == {}


@pytest.mark.slow
def test_lines_of_the_documentation_are_right_where_they_run() -> None:
    alarms = {}
    for line in LINES:
        facts = gather(shlex.split(line), start=Start.PROBE)
        each = re.search(r"PE=(\d+)", line)
        cores = (facts.line.ranks or 1) * (int(each[1]) if each else 1)
        fits = cores <= facts.node.cores and facts.hosts_here
        if not fits or facts.line.is_srun:
            continue
        facts = replace(facts, node=replace(facts.node, jobs=()))
        codes = [finding.code for finding in examine(facts)]
        if codes or len(facts.ranks) != (facts.line.ranks or len(facts.ranks)):
            alarms[line] = codes
    assert alarms == {}


APPS = sorted(Path(file.name).stem for file in list_configs("apps"))


def test_launches_of_shipped_applications_are_right() -> None:
    notes: list[Note] = []
    launches: list[str] = []
    ranks = min(2, len(os.sched_getaffinity(0)))
    for app in APPS:
        try:
            target = find_target(TargetRequest(app=app, ranks=ranks), lambda note: None)
            StudyCheck(target, None, notes.append).begin()
        except (AutotuneError, RunnerError):  # A program that is not installed here.
            continue
        launches.append(app)
    assert notes == []
    assert len(launches) >= 20
