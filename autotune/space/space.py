"""A space: parameters, constraints between them, and what a search asks about settings."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np

from autotune.errors import UsageError
from autotune.space.enumeration import valid_settings
from autotune.space.fingerprint import fingerprint
from autotune.space.launching import launched
from autotune.space.nodes import Expr
from autotune.space.parameter import RESOURCES, Parameter
from autotune.space.setting import Setting, Value, normalise_value
from autotune.space.words import Argument

_TRIES = 200
"""Independent draws before :meth:`Space.sample` starts repairing one."""
_RARE = 20
"""Combinations for each valid setting beyond which listing these takes long."""


@dataclass(frozen=True)
class Constraint:
    """A rule every setting must keep; it is broken only where it is known to be false.

    A rule of which no parameter is set does not apply: the library's own default is never invalid.
    ``written`` is the rule with derived values by name, for messages.
    """

    expr: Expr
    reason: str = ""
    written: Expr | None = None

    def __str__(self) -> str:
        return str(self.written or self.expr) + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True)
class _Values:
    """The :class:`~autotune.space.nodes.Scope` of one setting in one space."""

    space: Space
    setting: Mapping[str, Value]

    def value(self, name: str) -> Value | None:
        if name in self.setting:
            return self.setting[name]
        if name in self.space and (default := self.space[name].default) is not None:
            return default
        if name in self.space.derived:
            found = self.space.derived[name].evaluate(self)
            return None if found is None else normalise_value(found)
        return self.space.facts.get(name)

    def is_set(self, name: str) -> bool:
        return name in self.setting


@dataclass(frozen=True)
class Space:
    """What may vary.

    ``absent`` maps parameters of the definition that this library does not have to the reason.
    ``facts`` are values of the situation (ranks, cores, nodes) that expressions may mention.
    ``aliases`` maps what a parameter is called elsewhere to its name here, for messages.
    ``derived`` are values that follow from parameters and facts.  ``arguments`` are words of the
    program beside those that parameters give by themselves.  ``requires`` names what an
    application must understand (its ``tunable``).  ``starts`` are settings that are known to be
    worth trying: what a search proposes first.
    Raises :class:`UsageError` where names collide.
    """

    name: str
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Value] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, Expr] = field(default_factory=dict)
    arguments: tuple[Argument, ...] = ()
    requires: frozenset[str] = frozenset()
    starts: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        for parameter in self.parameters:
            if self.names.count(parameter.name) > 1:
                raise UsageError(f"space {self.name}: parameter {parameter.name} is given twice")
            if len(set(parameter.levels)) != len(parameter.levels) or not parameter.levels:
                raise UsageError(f"space {self.name}: {parameter.name} needs distinct levels")
            if not parameter.unset and parameter.when is not None:
                raise UsageError(
                    f"space {self.name}: {parameter.name} must always be given, so it cannot have "
                    'a condition; remove "when" or allow it to be unset'
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def without(self, reasons: Mapping[str, str]) -> Space:
        """The space less some parameters, each with the reason; names it has not mean nothing."""
        gone = {name: reason for name, reason in reasons.items() if name in self}
        kept = tuple(parameter for parameter in self if parameter.name not in gone)
        starts = tuple(start for start in self.starts if gone.keys().isdisjoint(start))
        absent = {**self.absent, **gone}
        return replace(self, parameters=kept, absent=absent, starts=starts) if gone else self

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) over names, targets, levels, defaults, conditions, implications, options,
        constraints, derived values, arguments and the facts these mention; not over names of the
        space or help texts."""
        return fingerprint(self)

    @property
    def resources(self) -> tuple[str, ...]:
        """Which of ranks, processes and workers a setting decides."""
        names = {p.name for p in self if p.target == "resource"} | set(self.derived)
        return tuple(name for name in RESOURCES if name in names)

    def value(self, name: str, setting: Mapping[str, Value]) -> Value | None:
        """What a parameter, a derived value or a fact is under a setting; None: not known."""
        return _Values(self, setting).value(name)

    def follows(self, name: str, setting: Mapping[str, Value]) -> bool:
        """Whether a parameter is set, or a parameter that a derived value follows from."""
        behind = self.derived[name].names if name in self.derived else {name}
        return not setting.keys().isdisjoint(behind)

    def truth(self, expr: Expr, setting: Mapping[str, Value]) -> bool | None:
        """Whether an expression holds under a setting; None: not known."""
        return expr.truth(_Values(self, setting))

    def active(self, name: str, setting: Mapping[str, Value]) -> bool:
        """Whether a value of this parameter can do anything: its condition is not known false."""
        when = self[name].when
        return when is None or self.truth(when, setting) is not False

    def canonical(self, setting: Mapping[str, Value]) -> Setting:
        """The one form of all settings that mean the same.

        Enumerated names become numbers; values equal to a known default, and values whose condition
        is false, are left out.  Parameters that this space does not know stay.
        """
        values: dict[str, Value] = {}
        for name, value in setting.items():
            if name not in self:
                values[name] = value
                continue
            parameter = self[name]
            value = parameter.normalise(value)
            if not parameter.unset or value != parameter.default:
                values[name] = value
        while idle := [n for n in values if n in self and not self.active(n, values)]:
            for name in idle:
                del values[name]
        return Setting(values)

    def broken(self, setting: Mapping[str, Value]) -> list[Constraint]:
        """The constraints that this setting (taken as it is) does not keep."""
        values = _Values(self, setting)
        return [
            constraint
            for constraint in self.constraints
            if not constraint.expr.names.isdisjoint(setting)
            and constraint.expr.truth(values) is False
        ]

    def violations(self, setting: Mapping[str, Value], *, grid: bool = True) -> list[str]:
        """What is wrong, in plain words; empty where nothing is.

        With ``grid`` false, values between the levels are allowed (a comparison a user asks for).
        """
        found = []
        for name, value in setting.items():
            if name not in self:
                found.append(self._unknown(name))
            elif problem := self[name].problem(self[name].normalise(value), grid=grid):
                found.append(f"{name}={value} {problem}")
        found += [f"{p.name} must be given" for p in self if not p.unset and p.name not in setting]
        broken = self.broken(self.canonical(setting))
        return found + [f"violates the constraint {constraint}" for constraint in broken]

    def is_valid(self, setting: Mapping[str, Value]) -> bool:
        """Whether a setting keeps to all conditions and constraints."""
        return not self.violations(setting)

    def combinations(self) -> int:
        """Product of the numbers of choices: an upper bound of the number of distinct settings."""
        return math.prod(len(parameter.choices) for parameter in self.parameters)

    def enumerate(self) -> Iterator[Setting]:
        """Every distinct canonical valid setting, lazily and in a fixed order, default first."""
        return valid_settings(self)

    def listed(self, most: int) -> list[Setting] | None:
        """All of :meth:`enumerate`, or None where they are more than ``most``, or so rare among the
        combinations that to look for them takes long."""
        if self.combinations() > _RARE * most:
            return None
        found = list(islice(self.enumerate(), most + 1))
        return None if len(found) > most else found

    def sample(self, rng: np.random.Generator) -> Setting:
        """A random valid canonical setting: each parameter uniformly over its choices.

        What breaks a rule is drawn again as a whole; where that does not succeed in a bounded
        number of tries, only the parameters of the broken rules are (no longer exactly uniform).
        Raises :class:`UsageError` where even that finds nothing.
        """
        values: dict[str, Value | None] = {}
        again: set[str] = set(self.names)
        for attempt in range(2 * _TRIES):
            values |= {name: self._draw(name, rng) for name in self.names if name in again}
            setting = self.canonical({n: v for n, v in values.items() if v is not None})
            broken = self.broken(setting)
            if not broken:
                return setting
            if attempt >= _TRIES:
                again = set().union(*(constraint.expr.names for constraint in broken))
        raise UsageError(
            f"space {self.name}: no setting drawn at random satisfies the constraints; the "
            f"last one violated {broken[0]}: relax the constraints"
        )

    def _draw(self, name: str, rng: np.random.Generator) -> Value | None:
        choices = self[name].choices
        return choices[int(rng.integers(len(choices)))]

    def launched(self, setting: Mapping[str, Value]) -> dict[str, dict[str, str]]:
        """What goes on the launch: see :func:`autotune.space.launching.launched`.

        Raises :class:`UsageError` for a parameter that the space does not have.
        """
        return launched(self, setting)

    def unknown(self, name: str) -> UsageError:
        """The error for a parameter that the space does not have."""
        return UsageError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        if name in self.derived:
            return f"{name} cannot be set, it is derived: {name} = {self.derived[name]}"
        if name in self.absent:
            return f"{name} cannot be used here: {self.absent[name]}"
        if name in self.aliases:
            return f"{name} is called {self.aliases[name]} here"
        near = difflib.get_close_matches(name, self.names, n=2, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"{name} is not a parameter of space {self.name}{hint}"
