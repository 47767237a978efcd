"""A scheduler whose commands are data: templates of argument lists, and patterns of their output.

No shell reads a template. ``{name}`` in a word stands for a value, ``{{`` and ``}}`` for braces;
a word that is ``{words}`` or ``{ids}`` stands for several words.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.errors import RunnerError
from runner.scheduler.base import (
    Allocation,
    Cause,
    Job,
    JobEnd,
    Scheduler,
    State,
    nodes_and_slots,
    output_of,
)

Words = tuple[str, ...]
_PLACE = re.compile(r"\{\{|\}\}|\{(\w*)\}")
SUBMIT_PLACES = frozenset({"name", "log", "nodes", "cwd", "words"})
TIME_PLACES = frozenset({"seconds", "minutes", "hours_minutes", "clock"})
ID_PLACES = frozenset({"id", "ids"})
_MOST_TEXT = 1 << 20
"""Characters of a command's output that are read."""


def places_of(word: str) -> set[str]:
    """The names of the values in a word of a template."""
    return {match[1] for match in _PLACE.finditer(word) if match[1] is not None}


@dataclass(frozen=True)
class JobStates:
    """How the state of jobs is asked for, and read from the lines of the answer.

    ``pattern`` has the groups ``id`` and ``state``. A job that no line names, or that is in a state
    of neither list, has ended. ``none`` finds the message of a command that fails because there is
    no job.
    """

    words: Words
    pattern: re.Pattern[str]
    pending: frozenset[str]
    running: frozenset[str]
    none: re.Pattern[str] | None = None


@dataclass(frozen=True)
class EndQuery:
    """How the end of a job is asked for: the groups ``state`` and ``limit`` of ``pattern``."""

    words: Words
    pattern: re.Pattern[str]
    causes: Mapping[str, Cause]


@dataclass(frozen=True)
class NodeVariables:
    """The variables of a job: its nodes, their number, and its slots.

    ``file`` names a file with a line for each slot, or with lines ``NODE SLOTS``; ``pairs`` holds
    such pairs itself. ``marker`` is set in every job.
    """

    marker: str = ""
    names: str = ""
    count: str = ""
    slots: str = ""
    file: str = ""
    pairs: str = ""


@dataclass(frozen=True)
class SchedulerTemplate:
    """The commands of a batch system; see docs/howto/extending.md.

    ``script``: the job's words are a script on standard input of ``submit``; otherwise they stand
    in its place ``{words}``. ``id`` finds the job's number in the answer. ``launch`` are the words
    that start ranks in such a job, for people.
    """

    name: str
    title: str
    submit: Words
    id: re.Pattern[str]
    states: JobStates
    cancel: Words
    script: bool = True
    time: Words = ()
    cwd: Words = ()
    end: EndQuery | None = None
    nodes: NodeVariables = field(default_factory=NodeVariables)
    launch: Words = ()

    @property
    def programs(self) -> list[str]:
        """The commands that it calls."""
        words = [self.submit[0], self.states.words[0], self.cancel[0]]
        return list(dict.fromkeys(words + ([self.end.words[0]] if self.end else [])))

    @property
    def lacks(self) -> list[str]:
        """What cannot be done with it, in words."""
        able = {
            "a time limit of workers ([submit] time)": bool(self.time),
            "why a job ended ([end])": self.end is not None,
            "the nodes of a job ([nodes])": self.nodes != NodeVariables(),
            "how ranks are started in a job (launch)": bool(self.launch),
        }
        return [words for words, is_there in able.items() if not is_there]


class TemplateScheduler(Scheduler):
    """The scheduler of a template."""

    name = "template"

    def __init__(self, template: SchedulerTemplate) -> None:
        self.template = template

    def require(self) -> None:
        missing = [word for word in self.template.programs if shutil.which(word) is None]
        if missing:
            raise RunnerError(
                f"{self.template.title} is not installed here ({', '.join(missing)} not found); "
                "start workers on a login node of the cluster, or use --scheduler local",
                code="scheduler.missing",
            )

    def submit(self, job: Job) -> str:
        template = self.template
        values = {"name": job.name, "log": str(job.log), "nodes": str(job.nodes)}
        values["cwd"] = job.cwd or str(Path.cwd())
        words = list(template.submit)
        more = [_literal(option) for option in job.options]
        if job.time_s is not None:
            if not template.time:
                raise RunnerError(
                    f"the template of {template.title} has no time limit ([submit] time); leave "
                    "--walltime out, or give the scheduler's own option with --job-option",
                    code="scheduler.no_time",
                )
            values |= _time_values(job.time_s)
            more = [*template.time, *more]
        if job.cwd is not None:
            more = [*template.cwd, *more]
        at = len(words) if template.script else words.index("{words}")
        words[at:at] = more
        script = ""
        if template.script:
            place = "" if template.cwd else f"cd {shlex.quote(values['cwd'])} || exit 1\n"
            script = f"#!/bin/sh\n{place}exec {shlex.join(job.words)}\n"
        answer = output_of(_filled(words, values, {"words": job.words}), script, job.env)
        match = template.id.search(answer[:_MOST_TEXT])
        if match is None:
            raise RunnerError(
                f"{template.submit[0]} printed no number of a job: {answer.strip()[:200]!r}; "
                f"expected text that matches {template.id.pattern!r}",
                code="scheduler.refuses",
            )
        return match[1]

    def states(self, ids: Sequence[str]) -> dict[str, State]:
        if not ids:
            return {}
        query = self.template.states
        try:
            answer = output_of(_filled(query.words, {}, {"ids": ids}))
        except RunnerError as problem:
            if query.none is None or not query.none.search(str(problem)):
                raise
            answer = ""
        states: dict[str, State] = dict.fromkeys(ids, "ended")
        for line in answer[:_MOST_TEXT].splitlines():
            match = query.pattern.search(line)
            if match is None or match["id"] not in states:
                continue
            if match["state"] in query.pending:
                states[match["id"]] = "pending"
            elif match["state"] in query.running:
                states[match["id"]] = "running"
        return states

    def end_of(self, job: str) -> JobEnd | None:
        query = self.template.end
        if query is None:
            return None
        try:
            answer = output_of(_filled(query.words, {"id": job}, {"ids": [job]}))
        except RunnerError:
            return None  # The scheduler has forgotten the job, or does not answer.
        match = query.pattern.search(answer[:_MOST_TEXT])
        cause = None if match is None else query.causes.get(match["state"])
        if match is None or cause is None:
            return None
        words = f"{self.template.title}: {match['state']}"
        return JobEnd(cause, words, match.groupdict().get("limit") or "")

    def cancel(self, ids: Sequence[str]) -> None:
        for number in [one for one, state in self.states(ids).items() if state != "ended"]:
            output_of(_filled(self.template.cancel, {"id": number}, {"ids": [number]}))

    def allocation_of(self, environment: Mapping[str, str]) -> Allocation | None:
        """The allocation of a process with this environment; None if it is in no such job."""
        variables = self.template.nodes
        marker = variables.marker or variables.file or variables.pairs or variables.names
        if not marker or not environment.get(marker):
            return None
        names = environment.get(variables.names, "") if variables.names else ""
        slots_by_node = nodes_and_slots(
            environment.get(variables.file, ""), environment.get(variables.pairs, "")
        )
        count = _number(environment.get(variables.count, "")) or len(slots_by_node) or None
        slots = _number(environment.get(variables.slots, "")) or sum(slots_by_node.values()) or None
        return Allocation(names, several=(count or 1) > 1, count=count, slots=slots)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _time_values(seconds: float) -> dict[str, str]:
    whole = math.ceil(seconds)
    minutes = math.ceil(seconds / 60)
    return {
        "seconds": str(whole),
        "minutes": str(minutes),
        "hours_minutes": f"{minutes // 60}:{minutes % 60:02}",
        "clock": f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}",
    }


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _filled(
    words: Sequence[str], values: Mapping[str, str], lists: Mapping[str, Sequence[str]]
) -> list[str]:
    """The words with their values; each stays one word, except a place of several."""
    texts = {**values, **{name: ",".join(one) for name, one in lists.items()}}
    filled: list[str] = []
    for word in words:
        several = lists.get(word[1:-1]) if word.startswith("{") and word.endswith("}") else None
        if several is not None:
            filled += several
        else:
            filled.append(_PLACE.sub(lambda match: _value(match, texts), word))
    return filled


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    return values[match[1]] if match[1] is not None else match[0][0]
