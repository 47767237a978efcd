"""What is to be published: values by where they go, rules for collectives, and the evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.rules import Rule, says_rule

Groups = Mapping[str, Mapping[str, str]]
GROUPS = ("mca", "prte", "pmix", "placement", "env")
"""Targets of a launch that a file can hold; program options and process counts are not among."""


@dataclass(frozen=True)
class Evidence:
    """Why the values are believed.  Gains are fractions, ``date`` is ISO 8601.

    ``machine`` describes where it was measured; ``check`` is what
    :mod:`autotune.publish.recheck` needs to measure again: a list of programs with input and ranks,
    of a study also the command line and its origin (:class:`autotune.study.origin.Origin`).
    ``guarded``: runs were rejected for foreign load; without that nothing is proven.
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

    def to_json(self) -> dict[str, Any]:
        plain = vars(self) | {"check": [dict(c) for c in self.check]}
        if self.guarded:
            del plain["guarded"]  # As earlier versions wrote it, and read it.
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evidence:
        """Inverse of :meth:`to_json`; TypeError or KeyError on anything else."""
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
    """Values and rules; ``groups`` maps mca, prte, pmix, placement and env to names and texts."""

    groups: Groups = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @property
    def names(self) -> set[tuple[str, str]]:
        """(group, name) of everything; a rule is ("rules", collective)."""
        found = {(group, name) for group, values in self.groups.items() for name in values}
        return found | {("rules", rule.collective) for rule in self.rules}

    def only(self, *groups: str) -> Content:
        """The values of these groups, without rules."""
        return Content({g: dict(v) for g, v in self.groups.items() if g in groups and v})

    def with_value(self, group: str, name: str, value: str) -> Content:
        values = {g: dict(v) for g, v in self.groups.items()}
        values.setdefault(group, {})[name] = value
        return Content(values, self.rules)

    def without(self, names: set[tuple[str, str]]) -> Content:
        """Everything but these (group, name) pairs."""
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


def without_rules(content: Content) -> Content:
    """``content`` without what a rules file says."""
    names = {("rules", r.collective) for r in content.rules}
    names |= {("mca", name) for name in content.groups.get("mca", {}) if says_rule(name)}
    return content.without(names)
