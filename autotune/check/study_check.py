"""The check of the launch that a study measures, from what the study knows and reads back.

It starts nothing: the line, the library and the node are known before the first run, and that run
says on which CPUs the ranks are. Jobs of others have notes of the study.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

from autotune.check.finding import LaunchFinding
from autotune.check.launch_facts import LaunchFacts, RankFacts
from autotune.check.launch_line import parse_line
from autotune.check.node import read_node
from autotune.check.pools import expected_threads, pools_of_program
from autotune.check.registry import RULES, examine
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.space import DEFAULT, Setting, Space
from autotune.targets.target import Target
from runner.cpus import cpus_of
from runner.errors import RunnerError
from runner.mpi.discover import adapter
from runner.scheduler import allocation
from runner.types import RunRecord

_MOST = 2
"""Findings that are said of one study."""
_NOT_HERE = ("cores.other_job", "launch.fails")


class StudyCheck:
    """Says what is wrong with the launch of a setting: at most two findings, the gravest first."""

    def __init__(self, target: Target, space: Space | None, say: Say, setting: Setting = DEFAULT):
        self._say = say
        self._codes: set[str] = set()
        self._rules = [
            rule for rule in RULES if rule.code not in _NOT_HERE and rule.weight.is_grave
        ]
        self._facts = _facts_of(target, space, setting)
        self._program = target.program
        self._has_ranks = False

    def begin(self) -> None:
        """Say what is known before the first run."""
        if self._facts is not None:
            self._report(self._facts)

    def ran(self, record: RunRecord) -> None:
        """Say what the first run shows in whose ranks were seen."""
        if self._facts is None or self._has_ranks or not record.bindings:
            return
        self._has_ranks = True
        if self._facts.hosts_here:
            self._report(_with_record(self._facts, record, self._program))

    def _report(self, facts: LaunchFacts) -> None:
        for finding in examine(facts, self._rules):
            if finding.weight.is_grave and finding.code not in self._codes:
                if len(self._codes) < _MOST:
                    self._say(_note(finding))
                self._codes.add(finding.code)


def _facts_of(target: Target, space: Space | None, setting: Setting) -> LaunchFacts | None:
    """What is known of the launch before it; None for a line that cannot be read."""
    own = adapter(target.library)
    spec = target.spec(space, setting)
    environment = own.environment(spec, dict(os.environ) | spec.env)
    try:
        line = parse_line(shlex.split(target.mpirun_line(own, space, setting)), target.library)
        hosts = own.hosts(spec.launch_options, environment, Path(target.cwd))
    except (UsageError, RunnerError):
        return None  # The launch itself says what is wrong.
    node = read_node(with_jobs=False)
    if target.cluster.cpu_set is not None:
        node = replace(node, cpus=target.cluster.cpu_set)
    is_local = target.cluster.testbed is None and target.cluster.nodes == 1
    return LaunchFacts(
        line,
        environment,
        library=target.library,
        node=node,
        slots=None if hosts is None else hosts.with_own_cores(node.cores).total,
        hosts_here=is_local and own.one_node(spec) and not allocation(environment).several,
    )


def _with_record(facts: LaunchFacts, record: RunRecord, program: tuple[str, ...]) -> LaunchFacts:
    """The facts with the ranks of a run: their CPUs, and the threads that they would start."""
    pools = pools_of_program(program)
    masks = [cpus_of(text) for text in record.bindings]
    ranks = tuple(
        RankFacts(
            number,
            record.host,
            cpus=cpus,
            threads=(cpus,) * expected_threads(pools, facts.rank_variables, len(cpus)),
            pools=tuple(sorted(pools or ())),
            world_size=record.world_size,
        )
        for number, cpus in enumerate(masks)
    )
    return replace(facts, ranks=ranks)


def _note(finding: LaunchFinding) -> Note:
    words = f"{finding.statement}: {finding.cost} [{finding.code}]"
    if finding.corrected_line is not None:
        words += f". The right line:\n  {shlex.join(finding.corrected_line)}"
    data = {"line": None if finding.corrected_line is None else list(finding.corrected_line)}
    return Note(finding.code, words, {"weight": finding.weight.title, **data})
