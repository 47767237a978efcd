"""Spaces: parameters with their constraints, and queries of a search about settings.

Besides :class:`Space`: the enumeration of all distinct valid settings, which does not store earlier
ones; and the launch of a setting: library parameters, placement, program words, processes.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from autotune.errors import UsageError
from autotune.space.expression import Expr
from autotune.space.fingerprint import fingerprint
from autotune.space.parameter import PLACEMENT, RESOURCES, Argument, Parameter, usual_option
from autotune.space.setting import Setting, Value, normalise_value
from autotune.space.vocabulary import LayoutRules

if TYPE_CHECKING:
    import numpy as np

_TRIES = 200
"""Independent random draws before :meth:`Space.sample` starts to repair one."""
_RARE = 20
"""Combinations per valid setting above which listing the settings takes too long."""


@dataclass(frozen=True)
class Constraint:
    """A rule for settings; it is broken only if known to be false.

    A rule does not apply if none of its parameters is set: the library's own default is never
    invalid. ``source`` is the rule with the names of derived values, for messages.
    """

    expr: Expr
    reason: str = ""
    source: Expr | None = None

    def __str__(self) -> str:
        return str(self.source or self.expr) + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True)
class _Values:
    """The :class:`~autotune.space.expression.Scope` of one setting in one space."""

    space: Space
    setting: Mapping[str, Value]

    def value(self, name: str) -> Value | None:
        if name in self.setting:
            return self.setting[name]
        if name in self.space and (default := self.space[name].default) is not None:
            return default
        if name in self.space.derived:
            result = self.space.derived[name].evaluate(self)
            return None if result is None else normalise_value(result)
        return self.space.facts.get(name)

    def is_set(self, name: str) -> bool:
        return name in self.setting


@dataclass(frozen=True)
class Space:
    """Parameters and levels with conditions and constraints, for one library.

    ``absent`` maps parameters of the definition that this library lacks to the reason. ``facts``
    are values of the situation (ranks, cores, nodes) that expressions may use. ``aliases`` maps
    other names of a parameter to its name here, for messages. ``derived`` are values that follow
    from parameters and facts. ``arguments`` are words of the program in addition to the parameters'
    own options. ``requires`` names what an application must understand (its ``tunable``).
    ``starts`` are settings that a search proposes first. ``layout`` are the words of its layouts;
    they are no part of the hash, because they decide nothing that is launched.

    Raises :class:`UsageError` for a parameter given twice, for repeated levels, and for a mandatory
    parameter with a condition.
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
    layout: LayoutRules = field(default_factory=LayoutRules)

    def __post_init__(self) -> None:
        for parameter in self.parameters:
            if self.names.count(parameter.name) > 1:
                raise UsageError(
                    f"space {self.name}: parameter {parameter.name} is given twice",
                    code="space.parameter_twice",
                )
            if len(set(parameter.levels)) != len(parameter.levels) or not parameter.levels:
                raise UsageError(
                    f"space {self.name}: {parameter.name} needs distinct levels",
                    code="space.invalid",
                )
            if not parameter.unset and parameter.when is not None:
                raise UsageError(
                    f"space {self.name}: {parameter.name} must always be given, so it cannot have "
                    'a condition; remove "when" or allow it to be unset',
                    code="space.invalid",
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def _conditions(self) -> tuple[tuple[str, Expr], ...]:
        """The parameters with a condition, and these conditions."""
        return tuple((p.name, p.when) for p in self.parameters if p.when is not None)

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def without(self, reasons: Mapping[str, str]) -> Space:
        """The space without some parameters, each with the reason; unknown names are ignored."""
        removals = {name: reason for name, reason in reasons.items() if name in self}
        remaining = tuple(parameter for parameter in self if parameter.name not in removals)
        starts = tuple(start for start in self.starts if removals.keys().isdisjoint(start))
        absent = {**self.absent, **removals}
        return (
            replace(self, parameters=remaining, absent=absent, starts=starts) if removals else self
        )

    def without_levels(self, levels: Mapping[str, Collection[Value]], reason: str) -> Space:
        """The space without some levels of parameters; ``reason`` is given if none is left.

        Parameters whose condition then holds at no level are left out, and so are settings to try
        first with a removed level.
        """
        left = {
            p.name: tuple(level for level in p.levels if level not in levels.get(p.name, ()))
            for p in self
        }
        empty = {name: reason for name in levels if name in self and not left[name]}
        parameters = (replace(p, levels=left[p.name]) if left[p.name] else p for p in self)
        space = replace(self, parameters=tuple(parameters)).without(empty)
        space = replace(space, starts=tuple(s for s in space.starts if space.is_valid(s)))
        idle = {
            p.name: f"its condition {p.when} holds at none of the levels here: {reason}"
            for p in space
            if p.when is not None and _never(space, p.when, levels)
        }
        return space.without(idle)

    @property
    def of_default(self) -> tuple[str, ...]:
        """Names of the parameters that act only under the default's library."""
        return self.names

    def foreign(self, setting: Mapping[str, Value]) -> frozenset[str]:
        """Names of the parameters that the setting's library lacks."""
        return frozenset()

    def with_default(self, name: str, value: Value) -> Space:
        """The space in which an unset parameter is known to have this value."""
        parameters = (replace(p, default=value) if p.name == name else p for p in self)
        return replace(self, parameters=tuple(parameters))

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of everything that determines the settings and their launches.

        It covers names, targets, levels, defaults, conditions, implications, options, constraints,
        derived values, arguments and the facts in expressions; not the name of the space or help
        texts.
        """
        rules = [constraint.expr for constraint in self.constraints]
        return fingerprint(self.parameters, rules, self.facts, self.derived, self.arguments)

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources (ranks, processes, threads, workers) that a setting decides."""
        names = {p.name for p in self if p.target == "resource"} | set(self.derived)
        return tuple(name for name in RESOURCES if name in names)

    def value(self, name: str, setting: Mapping[str, Value]) -> Value | None:
        """The value of a parameter, derived value or fact under a setting; None if not known."""
        return _Values(self, setting).value(name)

    def follows(self, name: str, setting: Mapping[str, Value]) -> bool:
        """True if a parameter is set, or any parameter on which a derived value depends."""
        behind = self.derived[name].names if name in self.derived else {name}
        return not setting.keys().isdisjoint(behind)

    def truth(self, expr: Expr, setting: Mapping[str, Value]) -> bool | None:
        """True if an expression is true under a setting; None if unknown."""
        return expr.truth(_Values(self, setting))

    def active(self, name: str, setting: Mapping[str, Value]) -> bool:
        """True if a value of this parameter can have an effect: its condition is not false."""
        when = self[name].when
        return when is None or self.truth(when, setting) is not False

    def canonical(self, setting: Mapping[str, Value]) -> Setting:
        """The common form of all settings with the same effect.

        Enumerated names become numbers. Values equal to a known default, and values whose condition
        is false, are left out. Parameters unknown to this space stay.
        """
        values: dict[str, Value] = {}
        for name, value in setting.items():
            parameter = self._by_name.get(name)
            if parameter is None:
                values[name] = value
                continue
            value = parameter.normalise(value)
            if not parameter.unset or value != parameter.default:
                values[name] = value
        while idle := list(self.idle(values)):
            for name in idle:
                del values[name]
        return setting.restrict_to(values) if isinstance(setting, Setting) else Setting(values)

    def idle(self, setting: Mapping[str, Value]) -> Iterator[str]:
        """Names in a setting whose condition is false under it, one by one."""
        scope = _Values(self, setting)
        for name, when in self._conditions:
            if name in setting and when.truth(scope) is False:
                yield name

    def broken_rules(self, setting: Mapping[str, Value]) -> list[Constraint]:
        """The constraints that this setting breaks, as given."""
        values = _Values(self, setting)
        return [
            constraint
            for constraint in self.constraints
            if not constraint.expr.names.isdisjoint(setting)
            and constraint.expr.truth(values) is False
        ]

    def violations(self, setting: Mapping[str, Value], *, grid: bool = True) -> list[str]:
        """The faults of a setting in plain words; empty if it has none.

        With ``grid`` false, values between the levels are allowed (for a comparison that a user
        requests).
        """
        problems = []
        for name, value in setting.items():
            if name not in self:
                problems.append(self._unknown(name))
            elif problem := self[name].problem(self[name].normalise(value), grid=grid):
                problems.append(f"{name}={value} {problem}")
        problems += [
            f"{p.name} must be given" for p in self if not p.unset and p.name not in setting
        ]
        rules = self.broken_rules(self.canonical(setting))
        return problems + [f"violates the constraint {constraint}" for constraint in rules]

    def is_valid(self, setting: Mapping[str, Value]) -> bool:
        """True if a setting satisfies all conditions and constraints."""
        return not self.violations(setting)

    def is_canonical(self, setting: Setting) -> bool:
        """True if a setting is valid and all its values have an effect."""
        return self.is_valid(setting) and self.canonical(setting) == setting

    def combinations(self) -> int:
        """Product of the numbers of choices: an upper bound of the number of distinct settings."""
        return math.prod(len(parameter.choices) for parameter in self.parameters)

    def enumerate(self) -> Iterator[Setting]:
        """Every distinct canonical valid setting, lazily and in a fixed order, default first."""
        return valid_settings(self)

    def all_settings(self, most: int) -> list[Setting] | None:
        """All settings of :meth:`enumerate`, or None if listing them takes too long.

        This happens with more than ``most`` settings, or if valid settings are rare among the
        combinations.
        """
        if self.combinations() > _RARE * most:
            return None
        settings = list(islice(self.enumerate(), most + 1))
        return None if len(settings) > most else settings

    def sample(self, rng: np.random.Generator) -> Setting:
        """A random valid canonical setting: each parameter uniform over its choices.

        A draw that breaks a rule is repeated as a whole. After a bounded number of tries, only the
        parameters of the broken rules are drawn again, so the result is no longer exactly uniform.
        Raises :class:`UsageError` if this finds no valid setting either.
        """
        values: dict[str, Value | None] = {}
        redraw: set[str] = set(self.names)
        for attempt in range(2 * _TRIES):
            values |= {name: self._draw(name, rng) for name in self.names if name in redraw}
            setting = self.canonical({n: v for n, v in values.items() if v is not None})
            rules = self.broken_rules(setting)
            if not rules:
                return setting
            if attempt >= _TRIES:
                redraw = set().union(*(constraint.expr.names for constraint in rules))
        raise UsageError(
            f"space {self.name}: no setting drawn at random satisfies the constraints; the "
            f"last one violated {rules[0]}: relax the constraints",
            code="space.no_setting",
        )

    def _draw(self, name: str, rng: np.random.Generator) -> Value | None:
        choices = self[name].choices
        return choices[int(rng.integers(len(choices)))]

    def launched(self, setting: Mapping[str, Value]) -> dict[str, dict[str, str]]:
        """The launch of a setting: see :func:`autotune.space.space.launched`.

        Raises :class:`UsageError` for a parameter that the space does not have.
        """
        return launched(self, setting)

    def unknown(self, name: str) -> UsageError:
        """The error for a parameter that the space does not have."""
        return UsageError(self._unknown(name), code="parameter.unknown")

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


def _never(space: Space, condition: Expr, names: Collection[str]) -> bool:
    """True if a condition on one parameter, which has lost levels, is false at all remaining
    ones."""
    if len(condition.names) != 1 or condition.names.isdisjoint(names):
        return False
    (name,) = condition.names
    choices = space[name].choices if name in space else (None,)
    settings = ({} if choice is None else {name: choice} for choice in choices)
    return all(space.truth(condition, setting) is False for setting in settings)


def valid_settings(space: Space) -> Iterator[Setting]:
    """Every distinct valid setting, depth first over the parameters; the last varies fastest.

    A combination is a distinct setting exactly if every value in it is active and it breaks no
    rule. Each test runs as soon as its parameters are decided. So a false condition costs one step
    instead of a whole sub-tree.
    """
    order = _parents_first(space)
    rules = _due(order, space)
    values: dict[str, Value] = {}

    def is_possible(depth: int) -> bool:
        names, constraints = rules[depth]
        if any(name in values and not space.active(name, values) for name in names):
            return False
        return not constraints or not set(space.broken_rules(values)).intersection(constraints)

    def walk(depth: int) -> Iterator[Setting]:
        if depth == len(order):
            yield Setting(values)
            return
        name = order[depth].name
        for choice in order[depth].choices:
            if choice is not None:
                values[name] = choice
            if is_possible(depth):
                yield from walk(depth + 1)
            values.pop(name, None)

    return walk(0)


def _parents_first(space: Space) -> list[Parameter]:
    """The parameters in order, each after those in its condition; cycles are kept."""
    order: dict[str, Parameter] = {}
    on_the_way: set[str] = set()

    def visit(parameter: Parameter) -> None:
        if parameter.name in order or parameter.name in on_the_way:
            return
        on_the_way.add(parameter.name)
        for name in sorted(parameter.when.names if parameter.when else ()):
            if name in space:
                visit(space[name])
        order[parameter.name] = parameter

    for parameter in space.parameters:
        visit(parameter)
    return list(order.values())


def _due(order: list[Parameter], space: Space) -> list[tuple[list[str], list[Constraint]]]:
    """For each depth: the conditions and constraints whose last parameter is decided there."""
    place = {parameter.name: depth for depth, parameter in enumerate(order)}

    def last(names: frozenset[str] | set[str]) -> int | None:
        return max((place[name] for name in names if name in place), default=None)

    rules: list[tuple[list[str], list[Constraint]]] = [([], []) for _ in order]
    for parameter in order:
        if parameter.when is not None:
            depth = last(parameter.when.names | {parameter.name})
            assert depth is not None  # it includes the parameter itself
            rules[depth][0].append(parameter.name)
    for constraint in space.constraints:
        depth = last(constraint.expr.names)
        if depth is not None:
            rules[depth][1].append(constraint)
    return rules


Groups = dict[str, dict[str, str]]


def launched(space: Space, setting: Mapping[str, Value]) -> Groups:
    """The launch of a setting: target -> {native name: text}, with all implied and derived values.

    Under ``arg`` the names are templates and the texts are words as a shell reads them, in their
    order on the command line. Raises :class:`UsageError` for a parameter that the space does not
    have.
    """
    launch: Groups = {}
    for name, value in setting.items():
        if name not in space:
            raise space.unknown(name)
        parameter = space[name]
        if parameter.target != "arg":
            launch.setdefault(parameter.target, {})[name] = str(parameter.normalise(value))
    for name in setting:
        for other, value in (
            space[name].implied_values(space[name].normalise(setting[name])).items()
        ):
            # A value of the setting itself has precedence over an implied one.
            launch.setdefault(_target_of(other, space), {}).setdefault(other, str(value))
    _derive(space, setting, launch)
    words = _words(space, setting)
    return launch | ({"arg": words} if words else {})


def _derive(space: Space, setting: Mapping[str, Value], launch: Groups) -> None:
    """Add resources that follow from set parameters; leave out those that follow from defaults."""
    for name in space.derived:
        if name in space.resources and space.follows(name, setting):
            value = space.value(name, setting)
            if value is not None:
                launch.setdefault("resource", {})[name] = str(normalise_value(value))
    if all(parameter.target != "file" for parameter in space):
        return
    for name in space.derived:
        # Input files may have derived values in their places.
        if space.follows(name, setting) and (value := space.value(name, setting)) is not None:
            launch.setdefault("file", {})[name] = str(normalise_value(value))


def _words(space: Space, setting: Mapping[str, Value]) -> dict[str, str]:
    arguments = [Argument(t) for n in setting if (t := _own_option(space, space[n], setting[n]))]
    for argument in space.arguments:
        if argument.when is None:
            if any(space.follows(name, setting) for name in argument.places):
                arguments.append(argument)
        elif space.truth(argument.when, setting):
            arguments.append(argument)
    return {a.template: a.text(lambda name: space.value(name, setting)) for a in arguments}


def _own_option(space: Space, parameter: Parameter, value: Value) -> str | None:
    """The parameter's own words, if any; a template without a placeholder is for true values."""
    if parameter.target != "arg":
        return None
    if parameter.option is not None:
        is_flag = not Argument(parameter.option).places
        return None if is_flag and value in (0, "") else parameter.option
    return None if parameter.name in _placeholder_names(space) else usual_option(parameter.name)


def _placeholder_names(space: Space) -> set[str]:
    """Parameters in placeholders of the space's arguments, themselves or in a derived value."""
    places = {name for argument in space.arguments for name in argument.places}
    behind = [expr.names for name, expr in space.derived.items() if name in places]
    return places.union(*behind)


def _target_of(name: str, space: Space) -> str:
    if name in space:
        return space[name].target
    return "placement" if name in PLACEMENT else "mca"
