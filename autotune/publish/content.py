"""The content of a published file: checked names and values, collective rules, and the evidence.

MPI libraries, shells, Tcl, Lua, YAML readers and browsers read a published file, often with the
rights of a whole cluster.  One narrow alphabet for all of them is safer than an escape for each: it
has no character that ends a line, a word, a string or a comment.  Every name and value of a content
is checked against it before it is rendered.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.collective_rules import Rule, says_rule
from autotune.dialects import dialect
from autotune.errors import UsageError
from autotune.space.commutativity import commutative_values
from autotune.space.outside_names import runs_programs

TABLES = (
    "coll_tuned_dynamic_rules_filename",
    "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
)
"""Parameters that name a file which autotune itself publishes."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,199}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:^+=/@%-]{1,500}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,199}")
_PATH = re.compile(r"/[A-Za-z0-9_.,:+=/@%-]{1,1000}")
_COMMENT = re.compile(r"[^ A-Za-z0-9_.,:;^+=/@%()\[\]-]")


def check_published_name(name: str) -> str:
    """``name`` if it can be the name of an MPI parameter; raises UsageError otherwise."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be published as a parameter name; expected a letter, then letters, "
            "digits and _",
            code="publish.refused_parameter",
        )
    if runs_programs(name) and name not in TABLES:
        raise UsageError(
            f"{name} cannot be published: it decides which program, library or file is used; "
            "expected a parameter of how MPI behaves",
            code="publish.refused_parameter",
        )
    return name


def check_published_value(name: str, value: str) -> str:
    """``value`` if every format can write it literally; else raises UsageError."""
    if not _VALUE.fullmatch(value):
        raise UsageError(
            f"{name} = {value!r} cannot be published; expected 1 to 500 letters, digits "
            "and _ . , : ^ + - = / @ % (no blanks, quotes or shell characters)",
            code="publish.refused_parameter",
        )
    return value


def check_published_variable(name: str) -> str:
    """``name`` if it is an environment variable that may be published; else raises UsageError."""
    if not _VARIABLE.fullmatch(name) or runs_programs(name):
        raise UsageError(
            f"the environment variable {name!r} cannot be published; expected capitals, "
            "digits and _, and not a variable that decides which programs run (PATH, LD_*, "
            "HOME, ...)",
            code="publish.refused_variable",
        )
    return name


def check_path(path: str) -> str:
    """``path`` if a published file may name it; raises UsageError otherwise."""
    if not _PATH.fullmatch(path):
        raise UsageError(
            f"the path {path!r} cannot be named in a published file; expected an absolute path of "
            "letters, digits and _ . , : + - = / @ %",
            code="publish.refused_path",
        )
    return path


def check_published_groups(groups: Mapping[str, Mapping[str, str]]) -> None:
    """Raise UsageError for a name or value of a launch that cannot be published."""
    for group, values in groups.items():
        for name, value in values.items():
            check_published_variable(name) if group == "env" else check_published_name(name)
            check_published_value(name, value)


def comment_text(text: str) -> str:
    """``text`` for a comment in any format: one line, no character that could end it."""
    plain = _COMMENT.sub("?", " ".join(text.split()))
    return plain.replace("--", "-").replace("]]", "] ]")


Groups = Mapping[str, Mapping[str, str]]
GROUPS = ("mca", "prte", "pmix", "placement", "env")
"""Groups of a launch that a file can hold: no program options, no numbers of processes."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of a publication.  Gains are fractions, ``date`` is ISO 8601.

    ``machine`` describes the machine of the measurement.  ``check`` is what
    :mod:`autotune.publish.recheck` needs to measure again: a list of programs with input and ranks,
    and for a study the command line and its provenance
    (:class:`autotune.targets.provenance.Provenance`).  ``guarded``: runs were rejected for foreign
    load; without the guard nothing is proven.
    """

    source: str
    proven: bool
    status: str
    setting: str
    programs: tuple[str, ...] = ()
    runs: int = 0
    gain: float | None = None
    gain_ci: tuple[float | None, float | None] | None = None
    date: str = ""
    mpi_family: str = ""
    mpi_version: str = ""
    machine: str = ""
    cluster: str = ""
    mpi_bin: str = ""
    """Directory of the launcher that was used."""
    check: tuple[Mapping[str, Any], ...] = ()
    guarded: bool = True
    renewed: Mapping[str, Any] = field(default_factory=dict)
    """The last measurement with a later version of the library, which confirmed the gain.

    ``mpi_version``, ``mpi_bin`` and ``date`` are texts, ``words`` is a list of sentences, one for
    each program.  Empty: there was none.
    """
    checked: str = ""
    """What was checked of the results, in one line; "": not known."""
    commutative_only: bool = False
    """Whether the user said that all operations of the programs that load the file commute."""
    over: str = ""
    """The library whose default the gain is over, if it is another one than ``mpi_family``."""

    @property
    def gain_title(self) -> str:
        """What the gain is over, for people."""
        return f"gain over the default{f' of {self.over}' if self.over else ''}"

    def to_json(self) -> dict[str, Any]:
        plain = vars(self) | {"check": [dict(c) for c in self.check]}
        # What says nothing is left out of the header.
        if self.guarded:
            del plain["guarded"]
        if not self.renewed:
            del plain["renewed"]
        if not self.commutative_only:
            del plain["commutative_only"]
        if not self.over:
            del plain["over"]
        if not self.checked:
            del plain["checked"]
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evidence:
        """Inverse of :meth:`to_json`; raises TypeError or KeyError for anything else."""
        ends = data["gain_ci"]
        return cls(
            **data
            | {
                "programs": tuple(data["programs"]),
                "gain_ci": None if ends is None else (ends[0], ends[1]),
                "check": tuple(data["check"]),
            }
        )


@dataclass(frozen=True)
class Content:
    """Values and rules.  ``groups`` maps mca, prte, pmix, placement and env to names and texts."""

    groups: Groups = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @property
    def names(self) -> set[tuple[str, str]]:
        """(group, name) of every value; a rule is ("rules", collective)."""
        value_names = {(group, name) for group, values in self.groups.items() for name in values}
        return value_names | {("rules", rule.collective) for rule in self.rules}

    def only(self, *groups: str) -> Content:
        """The values of these groups, without rules."""
        return Content({g: dict(v) for g, v in self.groups.items() if g in groups and v})

    def with_value(self, group: str, name: str, value: str) -> Content:
        values = {g: dict(v) for g, v in self.groups.items()}
        values.setdefault(group, {})[name] = value
        return Content(values, self.rules)

    def merge(self, other: Content) -> Content:
        """The values of both; those of ``other`` count where a name is in both."""
        groups = {*self.groups, *other.groups}
        return Content({g: {**self.groups.get(g, {}), **other.groups.get(g, {})} for g in groups})

    def without(self, names: set[tuple[str, str]]) -> Content:
        """The content without these (group, name) pairs."""
        groups = {
            g: {n: v for n, v in values.items() if (g, n) not in names}
            for g, values in self.groups.items()
        }
        rules = tuple(r for r in self.rules if ("rules", r.collective) not in names)
        return Content({g: v for g, v in groups.items() if v}, rules)

    def to_json(self) -> dict[str, Any]:
        return {
            "groups": {g: dict(v) for g, v in self.groups.items()},
            "rules": [dataclasses.asdict(r) for r in self.rules],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Content:
        """Inverse of :meth:`to_json`."""
        return cls(data["groups"], tuple(Rule(**r) for r in data["rules"]))


def commutative_part(content: Content, family: str) -> list[str]:
    """The values and rules that give wrong results with operations that do not commute, in words.

    ``family`` is that of the library that loads the content.
    """
    values = {n: v for group in content.groups.values() for n, v in group.items()}
    assignments = [f"{name}={value}" for name, value in sorted(commutative_values(values).items())]
    rules = dialect(family).commutative_rules(content.rules) if content.rules else []
    algorithms = dict.fromkeys((rule.collective, rule.algorithm) for rule in rules)
    return assignments + [f"rules for {name}: algorithm {number}" for name, number in algorithms]


def without_rules(content: Content) -> Content:
    """``content`` without everything that a rules file says."""
    names = {("rules", r.collective) for r in content.rules}
    names |= {("mca", name) for name in content.groups.get("mca", {}) if says_rule(name)}
    return content.without(names)
