"""Schedulers as data: templates of their commands, ``configs/schedulers/NAME.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from autotune.config.find import ConfigFile, find_config, list_configs
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from runner import scheduler
from runner.scheduler import Allocation, Scheduler
from runner.scheduler.template import (
    ID_PLACES,
    SUBMIT_PLACES,
    TIME_PLACES,
    EndQuery,
    JobStates,
    NodeVariables,
    SchedulerTemplate,
    TemplateScheduler,
    places_of,
)

KIND = "schedulers"
_Word = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00\n]+$")]
_List = Annotated[tuple[_Word, ...], Field(max_length=50)]
_Commands = Annotated[tuple[_Word, ...], Field(min_length=1, max_length=50)]
_Pattern = Annotated[str, Field(min_length=1, max_length=500)]
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,100}$|^$")]
_MOST_STATES = 50


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SubmitTable(_Table):
    """How a job is submitted; ``time`` and ``cwd`` stand behind ``words``, before ``{words}``."""

    words: _Commands
    id: _Pattern
    job: Literal["script", "words"] = "script"
    time: _List = ()
    cwd: _List = ()

    @field_validator("id")
    @classmethod
    def _one_group(cls, text: str) -> str:
        if _compiled(text).groups < 1:
            raise ValueError("expected a pattern with one group, the number of the job")
        return text

    @model_validator(mode="after")
    def _known_places(self) -> SubmitTable:
        _require_places("words", self.words, SUBMIT_PLACES)
        _require_places("cwd", self.cwd, SUBMIT_PLACES)
        _require_places("time", self.time, SUBMIT_PLACES | TIME_PLACES)
        if (self.job == "words") != ("{words}" in self.words):
            raise ValueError('expected the word "{words}" with job = "words", and only there')
        return self


class StateTable(_Table):
    """How the states of jobs are asked for and read."""

    words: _Commands
    pattern: _Pattern
    pending: Annotated[tuple[str, ...], Field(max_length=_MOST_STATES)]
    running: Annotated[tuple[str, ...], Field(min_length=1, max_length=_MOST_STATES)]
    none: _Pattern | None = None

    @model_validator(mode="after")
    def _known(self) -> StateTable:
        _require_places("words", self.words, ID_PLACES)
        _require_groups(self.pattern, "id", "state")
        if self.none is not None:
            _compiled(self.none)
        return self


class CancelTable(_Table):
    """How a job is cancelled; an ended job is not cancelled."""

    words: _Commands

    @model_validator(mode="after")
    def _known(self) -> CancelTable:
        _require_places("words", self.words, ID_PLACES)
        if not any(places_of(word) for word in self.words):
            raise ValueError("expected {id} in a word")
        return self


class EndTable(_Table):
    """How one learns why a job ended."""

    words: _Commands
    pattern: _Pattern
    causes: dict[
        str, Literal["time_limit", "memory", "node", "preempted", "cancelled", "other"]
    ] = Field(max_length=_MOST_STATES)

    @model_validator(mode="after")
    def _known(self) -> EndTable:
        _require_places("words", self.words, ID_PLACES)
        _require_groups(self.pattern, "state")
        return self


class NodesTable(_Table):
    """Variables of a job that say its nodes."""

    marker: _Variable = ""
    names: _Variable = ""
    count: _Variable = ""
    slots: _Variable = ""
    file: _Variable = ""
    pairs: _Variable = ""


class SchedulerFile(_Table):
    """The content of a file."""

    title: Annotated[str, Field(min_length=1, max_length=60)]
    tried: bool = False
    """True if the template was seen to work with its batch system."""
    submit: SubmitTable
    state: StateTable
    cancel: CancelTable
    end: EndTable | None = None
    nodes: NodesTable = NodesTable()
    launch: _List = ()

    def template(self, name: str) -> SchedulerTemplate:
        """The template for the runner."""
        state, end = self.state, self.end
        return SchedulerTemplate(
            name=name,
            title=self.title,
            submit=self.submit.words,
            id=_compiled(self.submit.id),
            states=JobStates(
                state.words,
                _compiled(state.pattern),
                frozenset(state.pending),
                frozenset(state.running),
                None if state.none is None else _compiled(state.none),
            ),
            cancel=self.cancel.words,
            script=self.submit.job == "script",
            time=self.submit.time,
            cwd=self.submit.cwd,
            end=None if end is None else EndQuery(end.words, _compiled(end.pattern), end.causes),
            nodes=NodeVariables(**self.nodes.model_dump()),
            launch=self.launch,
        )


@dataclass(frozen=True)
class NamedTemplate:
    """A template, its file, and whether it was seen to work."""

    template: SchedulerTemplate
    path: str
    tried: bool


def read_template(file: ConfigFile) -> NamedTemplate:
    """The template in a file; raises UsageError with all mistakes."""
    content = read_toml(file.text, file.path, SchedulerFile)
    return NamedTemplate(content.template(file.name), file.path, content.tried)


def scheduler_templates() -> list[NamedTemplate]:
    """Every template by name; raises UsageError for an invalid file."""
    return [read_template(file) for file in list_configs(KIND)]


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of this name, of the code or a template; a path names a template's file.

    Raises UsageError or RunnerUsageError for an unknown name, RunnerError if it is not usable here.
    """
    if name in scheduler.names():
        return scheduler.find(name)
    names = [*scheduler.names(), *(file.name for file in list_configs(KIND))]
    if name not in names and "/" not in name and not name.endswith(".toml"):
        raise UsageError(
            f"--scheduler {name!r} is not known; expected one of {', '.join(names)}, or a file",
            code="scheduler.unknown",
        )
    template = TemplateScheduler(read_template(find_config(KIND, name)).template)
    template.require()
    return template


def allocation(environment: Mapping[str, str]) -> Allocation:
    """The allocation of a process, as the schedulers of the code know it, else by a template."""
    own = scheduler.allocation(environment)
    if own.count is not None or own.several:
        return own
    for one in scheduler_templates():
        theirs = TemplateScheduler(one.template).allocation_of(environment)
        if theirs is not None:
            return theirs
    return own


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ValueError(f"not a regular expression: {problem}") from None


def _require_groups(pattern: str, *names: str) -> None:
    missing = [name for name in names if name not in _compiled(pattern).groupindex]
    if missing:
        raise ValueError(f"the pattern lacks the groups {', '.join(f'(?P<{n}>)' for n in missing)}")


def _require_places(key: str, words: tuple[str, ...], known: frozenset[str]) -> None:
    used = set().union(*(places_of(word) for word in words)) if words else set()
    if unknown := sorted(used - known):
        raise ValueError(
            f"{key}: no value is called {', '.join(unknown)}; expected {', '.join(sorted(known))}"
        )
    if key == "words" and places_of(words[0]):
        raise ValueError("words: the first word is a command, not a value")
