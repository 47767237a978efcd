"""``autotune check``: the findings about launch lines, as documents."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from autotune.check.comparison import comparison_command
from autotune.check.finding import LaunchFinding
from autotune.check.gather import Start, gather
from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import parse_line
from autotune.check.merged_line import merged_line
from autotune.check.registry import RULES, examine, rule_of
from autotune.check.script import ScriptLine, launch_lines
from autotune.document import Document, Omitted
from autotune.errors import UsageError
from autotune.targets.wrapped_launcher import is_launcher, split_wrappers
from runner.cpus import cpu_list
from runner.files.paths import is_file
from runner.scheduler import allocation

TIMEOUT_S = 60.0
"""Longest run of a program in seconds, unless another time is given."""
_OUTPUT = re.compile(r"-{1,2}(o|out|output|outfile|out-file|write|log|checkpoint)(=.*)?")


class FaultRow(Document):
    """One finding."""

    code: str
    weight: str
    """``wrong``, ``> 2x``, ``10 to 100 %`` or ``< 10 %``: what the fault costs."""
    statement: str
    """What is."""
    cost: str
    """Why it costs."""
    certainty: str
    """``seen`` in the ranks, ``known`` from line, files and library, or ``likely``."""
    where: str
    """Rank, option, variable or file; "" if that says nothing more."""
    corrected_line: list[str] | None
    """The right line as arguments, with variables before the launcher; null if no line cures it."""
    compare: list[str] | None
    """The command that proves the corrected line to be faster; null if it is not about speed."""
    advice: str
    """What to do beside the line, or in its place."""


class RankPlacement(Document):
    """One rank of this node."""

    rank: int
    cpus: str
    """CPUs on which it may run, as a list of the kernel."""
    threads: list[str]
    """CPUs of each thread that computes, the main thread included."""
    world_size: int | None
    """The size of its MPI_COMM_WORLD; null if unknown."""


class CheckedLaunch(Document):
    """One launch line and what is wrong with it."""

    line: list[str]
    number: Omitted[int] = None
    """Its line in the script."""
    started: str
    """``program``, ``probe`` (in the program's place) or ``nothing``."""
    reason: str
    """Why the program itself was not run; "" if it was."""
    mpi: str
    """The launcher's library and its version; "" if unknown."""
    seconds: float | None
    """The time of the launch; null if nothing was started."""
    exit_code: int | None
    """Its exit code; null if nothing was started, or at the time limit."""
    error_tail: str
    """The end of standard error of a launch that failed."""
    cores: int
    """Cores that the launch may use."""
    cpus: str
    """Its CPUs."""
    ranks: list[RankPlacement]
    findings: list[FaultRow]
    """The gravest first."""
    corrected_line: list[str] | None
    """The line with the corrections of several findings; null if fewer than two fit together."""
    rules: int
    """Rules that were asked."""

    @property
    def is_grave(self) -> bool:
        """True if a finding is of the two gravest classes."""
        return any(one.weight in ("wrong", "> 2x") for one in self.findings)


class LaunchCheck(Document):
    """The check of a launch line, or of all launch lines of a script."""

    script: str | None
    """The script; null for a line."""
    launches: list[CheckedLaunch]

    @property
    def is_grave(self) -> bool:
        """True if a launch has a finding of the two gravest classes."""
        return any(one.is_grave for one in self.launches)


class ExplainedFinding(Document):
    """A kind of finding, for ``--why``."""

    code: str
    weight: str
    summary: str
    explanation: str


def check(
    words: Sequence[str], *, dry: bool | None = None, timeout_s: float = TIMEOUT_S
) -> LaunchCheck:
    """Check a launch line, given as arguments, or a script with launch lines, given as its path.

    ``dry``: a probe runs in the program's place. None: the program runs, unless its arguments name
    files that it could write. Of a script only the probe is started. Raises UsageError if there is
    no launch line.
    """
    _, rest = split_wrappers(words)
    if len(words) == 1 and is_file(Path(words[0])) and not is_launcher(words[0]):
        lines = launch_lines(Path(words[0]))
        return LaunchCheck(script=words[0], launches=[_checked_line(one) for one in lines])
    if not rest or not is_launcher(rest[0]):
        raise UsageError(
            f"{shlex.join(words)} is neither a launch line nor a script with one; expected "
            "autotune check -- mpirun -n 4 ./a.out, or autotune check job.sbatch",
            code="check.no_launcher",
        )
    start, reason = _start(words, dry)
    facts = gather(words, start=start, timeout_s=timeout_s)
    return LaunchCheck(script=None, launches=[checked(facts, reason)])


def _start(words: Sequence[str], dry: bool | None) -> tuple[Start, str]:
    """What to start, and why it is not the program."""
    if dry:
        return Start.PROBE, "--dry"
    names = _writable(parse_line(words).program)
    if dry is None and names:
        return Start.PROBE, f"the program could write {', '.join(names)} (--run runs it)"
    return Start.PROGRAM, ""


def _writable(program: Sequence[str]) -> list[str]:
    """Arguments that name files which the program could write."""
    names = []
    for at, word in enumerate(program[1:], 1):
        value = word.partition("=")[2] if word.startswith("-") else word
        if _OUTPUT.fullmatch(word):
            names.append(value or next(iter(program[at + 1 : at + 2]), word))
        elif value and is_file(Path(value)) and os.access(value, os.W_OK) and not _is_code(value):
            names.append(value)
    return list(dict.fromkeys(names))


def _is_code(name: str) -> bool:
    """True for a program, which is read and not written."""
    return os.access(name, os.X_OK) or Path(name).suffix in (".py", ".sh", ".jl", ".so", ".lua")


def _checked_line(line: ScriptLine) -> CheckedLaunch:
    environment = {**os.environ, **line.environment}
    _, launch = split_wrappers(line.words)
    in_job = bool(allocation(os.environ).nodes)
    start, reason = Start.PROBE, "a script is read, not run"
    if line.unknown:
        start, reason = Start.NONE, f"unknown: {', '.join(line.unknown)}"
    elif line.is_batch and not in_job:
        start, reason = Start.NONE, "the job runs on other nodes"
    elif PurePath(launch[0]).name == "srun" and not in_job:
        start, reason = Start.NONE, "srun outside of a job would wait for one"
    facts = gather(line.words, environment, start)
    if line.is_batch and not in_job:
        facts = replace(facts, hosts_here=False)
    return checked(facts, reason, line.number)


def checked(facts: LaunchFacts, reason: str, number: int | None = None) -> CheckedLaunch:
    """The document about a launch."""
    outcome, library = facts.outcome, facts.library
    start = Start.NONE if outcome is None else Start.PROBE if outcome.dry else Start.PROGRAM
    if outcome is None and not reason:
        reason = f"{facts.line.launcher} is not found"
    failed = outcome is not None and outcome.exit_code not in (0, None)
    findings = examine(facts)
    lines = [one.corrected_line for one in findings if one.corrected_line is not None]
    merged = merged_line(facts.line.words, lines)
    return CheckedLaunch(
        line=list(facts.line.words),
        number=number,
        started=start.value,
        reason=reason,
        mpi="" if library is None else f"{library.family} {library.version}",
        seconds=None if outcome is None else outcome.seconds,
        exit_code=None if outcome is None else outcome.exit_code,
        error_tail=outcome.error_tail[-2000:] if outcome is not None and failed else "",
        cores=facts.node.cores,
        cpus=cpu_list(facts.node.cpus),
        ranks=[
            RankPlacement(
                rank=rank.rank,
                cpus=cpu_list(rank.cpus),
                threads=[cpu_list(thread) for thread in rank.threads],
                world_size=rank.world_size,
            )
            for rank in facts.ranks
        ],
        findings=[_row(finding, facts) for finding in findings],
        corrected_line=None if merged is None else list(merged),
        rules=len(RULES),
    )


def _row(finding: LaunchFinding, facts: LaunchFacts) -> FaultRow:
    line, command = finding.corrected_line, None
    if finding.comparison and line is not None:
        command = comparison_command(facts.line, line, facts.library)
    return FaultRow(
        code=finding.code,
        weight=finding.weight.title,
        statement=finding.statement,
        cost=finding.cost,
        certainty=finding.certainty.value,
        where=finding.where,
        corrected_line=None if line is None else list(line),
        compare=None if command is None else list(command),
        advice=finding.advice,
    )


def explain_finding(code: str) -> ExplainedFinding:
    """What a code means; raises UsageError for an unknown one."""
    rule = rule_of(code)
    if rule is None:
        codes = ", ".join(sorted(one.code for one in RULES))
        raise UsageError(
            f"no finding has the code {code!r}; expected one of {codes}", code="check.code"
        )
    return ExplainedFinding(
        code=rule.code,
        weight=rule.weight.title,
        summary=rule.summary,
        explanation=rule.explanation,
    )
