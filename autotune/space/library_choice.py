"""The choice of the MPI library as a parameter: combines the spaces of several libraries.

The parameter ``mpi`` names the library of a setting; unset means the first library, the default's.
Each library keeps its own space. A parameter acts only under the libraries that have it. Parameters
of the same name (placement, program options, environment variables) are one parameter with the
levels, default and conditions of the setting's library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from autotune.errors import UsageError
from autotune.space.expression import Expr, parse_expression
from autotune.space.parameter import Parameter
from autotune.space.setting import Setting, Value
from autotune.space.space import _RARE, Constraint, Space

MPI = "mpi"
"""The parameter that names the library of a setting; unset means the first one."""
FIRST = ""
"""The first library among the members of a choice: used by settings without ``mpi``."""


@dataclass(frozen=True)
class LibraryChoice(Space):
    """One space of several libraries; :meth:`of` creates it.

    ``members`` has the space of each library by its value of ``mpi``, that of the first library
    under :data:`FIRST`. The setting's member decides whatever depends on values in force
    (conditions, defaults, rules, the launch); ``parameters`` describes all members together.
    """

    members: Mapping[str, Space] = field(default_factory=dict)

    @classmethod
    def of(cls, first: Space, others: Mapping[str, Space]) -> LibraryChoice:
        """The choice between the library of ``first`` and ``others``, by their values of ``mpi``.

        Raises UsageError if the spaces cannot be combined: a name has two meanings, or a parameter
        is mandatory only under some of the libraries.
        """
        members = {FIRST: first, **others}
        names = dict.fromkeys(chain.from_iterable(space.names for space in members.values()))
        if MPI in names:
            raise UsageError(
                f"a space has a parameter {MPI}, which is the name of the choice of the library "
                "in a search under several; choose another space (--space)",
                code="space.libraries_differ",
            )
        choice = Parameter(
            MPI, tuple(others), "library", help="The MPI library (unset: the first one)"
        )
        parameters = [_join_parameter(name, members) for name in names]
        derived_values = {
            n: e for space in reversed(members.values()) for n, e in space.derived.items()
        }
        return cls(
            name=", ".join(dict.fromkeys(space.name for space in members.values())),
            parameters=(choice, *parameters),
            constraints=tuple(_rules(members)),
            absent=_unknown_everywhere(members, lambda space: space.absent, names),
            facts={n: v for space in reversed(members.values()) for n, v in space.facts.items()},
            aliases=_unknown_everywhere(members, lambda space: space.aliases, names),
            derived=derived_values,
            arguments=first.arguments,
            requires=frozenset().union(*(space.requires for space in members.values())),
            starts=tuple(_starts(members)),
            members=members,
        )

    def member(self, setting: Mapping[str, Value]) -> Space:
        """The space of a setting's library."""
        return self.members.get(str(setting.get(MPI, FIRST)), self.members[FIRST])

    def own(self, setting: Mapping[str, Value]) -> dict[str, Value]:
        """The values of a setting for its library, without the name of the library."""
        member = self.member(setting)
        return {name: value for name, value in setting.items() if name in member}

    def without(self, reasons: Mapping[str, str]) -> Space:
        """As :meth:`Space.without`; the choice of the library itself stays."""
        left = {name: space.without(reasons) for name, space in self.members.items()}
        return LibraryChoice.of(left.pop(FIRST), left)

    def without_levels(self, levels: Mapping[str, Collection[Value]], reason: str) -> Space:
        """As :meth:`Space.without_levels`, for every library."""
        left = {n: space.without_levels(levels, reason) for n, space in self.members.items()}
        return LibraryChoice.of(left.pop(FIRST), left)

    def with_default(self, name: str, value: Value) -> Space:
        """As :meth:`Space.with_default`, for the first library, under which the default was
        seen."""
        left = dict(self.members)
        first = left.pop(FIRST)
        return LibraryChoice.of(first.with_default(name, value), left) if name in first else self

    @property
    def of_default(self) -> tuple[str, ...]:
        first, *others = self.members.values()
        return tuple(name for name in first.names if not any(name in space for space in others))

    def foreign(self, setting: Mapping[str, Value]) -> frozenset[str]:
        return self._foreign.get(str(setting.get(MPI, FIRST)), frozenset())

    @cached_property
    def _foreign(self) -> dict[str, frozenset[str]]:
        """For each library, the parameters that it lacks."""
        names = set(self.names) - {MPI}
        return {lib: frozenset(names.difference(s.names)) for lib, s in self.members.items()}

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of the libraries' names and the hashes of their spaces."""
        content = {name: space.hash for name, space in self.members.items()}
        return hashlib.sha256(json.dumps({"libraries": content}).encode()).hexdigest()

    def value(self, name: str, setting: Mapping[str, Value]) -> Value | None:
        if name == MPI:
            return setting.get(MPI)
        return self.member(setting).value(name, self.own(setting))

    def follows(self, name: str, setting: Mapping[str, Value]) -> bool:
        return self.member(setting).follows(name, self.own(setting))

    def active(self, name: str, setting: Mapping[str, Value]) -> bool:
        member = self.member(setting)
        return name == MPI or (name in member and member.active(name, self.own(setting)))

    def canonical(self, setting: Mapping[str, Value]) -> Setting:
        own_values = {n: v for n, v in setting.items() if n == MPI or n not in self}
        return self.member(setting).canonical(self.own(setting)).with_values(own_values)

    def idle(self, setting: Mapping[str, Value]) -> Iterator[str]:
        member = self.member(setting)
        for name in setting:
            if name != MPI and name in self and name not in member:
                yield name
        yield from member.idle(self.own(setting))

    def broken_rules(self, setting: Mapping[str, Value]) -> list[Constraint]:
        values = self.own(setting)
        library = str(setting.get(MPI, FIRST))
        limits = [
            rule
            for name, rule in self._limits.get(library, {}).items()
            if name in values and values[name] not in self.members[library][name].levels
        ]
        return [*self.member(setting).broken_rules(values), *limits]

    @cached_property
    def _limits(self) -> dict[str, dict[str, Constraint]]:
        """For each library, rules for the parameters whose levels differ under another library."""
        return {
            library: {
                parameter.name: _limit(library, parameter)
                for parameter in space
                if set(self[parameter.name].levels) != set(parameter.levels)
            }
            for library, space in self.members.items()
        }

    def enumerate(self) -> Iterator[Setting]:
        """Every distinct canonical valid setting, library after library, default first."""
        for library, space in self.members.items():
            for setting in space.enumerate():
                yield setting if library == FIRST else setting.with_values({MPI: library})

    def all_settings(self, most: int) -> list[Setting] | None:
        if sum(space.combinations() for space in self.members.values()) > _RARE * most:
            return None
        settings = list(islice(self.enumerate(), most + 1))
        return None if len(settings) > most else settings

    def launched(self, setting: Mapping[str, Value]) -> dict[str, dict[str, str]]:
        """The launch under the setting's library, which the group ``library`` names."""
        for name in setting:
            if name not in self:
                raise self.unknown(name)
        library_group = {"library": {MPI: str(setting[MPI])}} if MPI in setting else {}
        return {**self.member(setting).launched(self.own(setting)), **library_group}


def _join_parameter(name: str, members: Mapping[str, Space]) -> Parameter:
    """The parameter ``name`` of all libraries that have it, combined."""
    owners = {library: space[name] for library, space in members.items() if name in space}
    one, *others = owners.values()
    for other in others:
        if (other.target, other.is_text) != (one.target, one.is_text):
            raise UsageError(
                f"the spaces of the libraries give {name} two meanings ({one.target} and "
                f"{other.target}, {one.describe_levels()} and {other.describe_levels()}); choose "
                "other spaces (--space)",
                code="space.libraries_differ",
            )
    every = len(owners) == len(members)
    if not all(p.unset for p in owners.values()) and not (
        every and all(not p.unset and p.levels == one.levels for p in owners.values())
    ):
        raise UsageError(
            f"{name} must always be given under one of the libraries, but not with the same "
            "levels under all; choose other spaces (--space)",
            code="space.libraries_differ",
        )
    defaults = {p.default for p in owners.values()}
    return replace(
        one,
        levels=tuple(dict.fromkeys(chain.from_iterable(p.levels for p in owners.values()))),
        default=one.default if len(defaults) == 1 else None,
        when=_condition(owners, members),
        implies=_merge(*(p.implies for p in owners.values())),
        implies_at=_merge(*(p.implies_at for p in owners.values())),
        enum=_common_entries(*(p.enum for p in owners.values())),
        words=_merged_words(*(p.words for p in owners.values())),
    )


def _merge(*parts: Mapping[Any, Any]) -> dict[Any, Any]:
    """All entries; the first part has precedence."""
    return {key: value for part in reversed(parts) for key, value in part.items()}


def _merged_words(*parts: tuple[str, ...]) -> tuple[str, ...]:
    """The words of all libraries; none if one of them accepts any word."""
    return tuple(dict.fromkeys(chain.from_iterable(parts))) if all(parts) else ()


def _common_entries(*parts: Mapping[int, str]) -> dict[int, str]:
    """The names of numbers on which no two libraries differ."""
    entries = _merge(*parts)
    return {n: word for n, word in entries.items() if all(p.get(n, word) == word for p in parts)}


def _condition(owners: Mapping[str, Parameter], members: Mapping[str, Space]) -> Expr | None:
    """The condition under which a parameter acts, in the libraries that have it; None: always."""
    if len(owners) == len(members) and all(p.when is None for p in owners.values()):
        return None
    under: dict[str, list[str]] = {}
    for library, parameter in owners.items():
        under.setdefault("" if parameter.when is None else str(parameter.when), []).append(
            f"({_names(library)})"
        )
    parts = [
        f"({' or '.join(tests)})" + (f" and ({when})" if when else "")
        for when, tests in under.items()
    ]
    if len(under) == 1 and len(owners) == len(members):
        return next(iter(owners.values())).when
    return parse_expression(" or ".join(f"({part})" for part in parts))


def _names(library: str) -> str:
    """The condition that a setting names this library."""
    return f"not set({MPI})" if library == FIRST else f"set({MPI}) and {MPI} == '{library}'"


def _limit(library: str, parameter: Parameter) -> Constraint:
    """The rule that a parameter has one of its own levels under a library."""
    levels = ", ".join(repr(level) for level in parameter.levels)
    levels_rule = f"{parameter.name} in ({levels})"
    rule = f"not ({_names(library)}) or not set({parameter.name}) or {levels_rule}"
    where = "the first library" if library == FIRST else library
    return Constraint(
        parse_expression(rule), f"its levels under {where}", parse_expression(levels_rule)
    )


def _rules(members: Mapping[str, Space]) -> Iterator[Constraint]:
    """The rules of all libraries, each under its own library; for readers of the space."""
    for library, space in members.items():
        for rule in space.constraints:
            words = parse_expression(f"not ({_names(library)}) or ({rule.expr})")
            yield Constraint(words, rule.reason)


def _starts(members: Mapping[str, Space]) -> Iterator[Setting]:
    """The settings to try first: each other library unchanged, then those of the spaces."""
    for library in members:
        if library != FIRST:
            yield Setting({MPI: library})
    for library, space in members.items():
        for start in space.starts:
            yield start if library == FIRST else start.with_values({MPI: library})


def _unknown_everywhere(
    members: Mapping[str, Space], part: Any, known_names: Mapping[str, None]
) -> dict[str, str]:
    """Names that spaces explain (absent, renamed) and that no space has."""
    explanations: dict[str, str] = _merge(*(part(space) for space in members.values()))
    return {name: why for name, why in explanations.items() if name not in known_names}
