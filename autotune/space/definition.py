"""Space files: their content, validated but not yet resolved against a library.

Here are the tables of a space file and how one extends another; the check that every name in an
expression is a parameter, a derived value or a fact; and the library specifications (``openmpi``,
``openmpi>=4.1,<5``) of parts of a definition.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from autotune.config.cluster import known_family
from autotune.config.find import ConfigFile, find_config
from autotune.config.validated import read_toml, read_what_is_right
from autotune.errors import UsageError
from autotune.space.expression import parse_expression as parse_expression
from autotune.space.layout_table import LayoutTable
from autotune.space.parameter import (
    CORES_EACH,
    Argument,
    ParameterKind,
    divisor_expression,
    parse_levels,
    read_template,
)
from autotune.space.setting import NAME, Setting, Value, normalise_value
from runner.mpi.library import Library

KIND = "spaces"
SPACE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?<!\.toml)")
ENUM = "enum"
"""Used in place of levels: all values that the library enumerates."""


class Keys(BaseModel):
    """Everything that can be said about a parameter, in general or for one library."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str | None = None
    levels: Any = None
    exclude: list[int | str] = Field(default_factory=list)
    target: ParameterKind | None = None
    default: bool | int | float | str | None = None
    default_rule: str | None = None
    unset: bool = True
    when: str | None = None
    implies: dict[str, bool | int | float | str | dict[str, bool | int | float | str]] = Field(
        default_factory=dict
    )
    """Values by name; a table is for one level, which implies the values in it."""
    option: str | None = None
    help: str = ""
    absent: str | None = None
    optional: bool = False

    @property
    def implied_values(self) -> list[tuple[str, Value]]:
        """All implied values, for any level."""
        values: list[tuple[str, Value]] = []
        for name, value in self.implies.items():
            inner = value if isinstance(value, dict) else {name: value}
            values += [(n, normalise_value(v)) for n, v in inner.items()]
        return values

    @field_validator("levels")
    @classmethod
    def _levels_can_be_read(cls, value: Any) -> Any:
        if (number := divisor_expression(value)) is not None:
            _tell_pydantic(parse_expression, number)
        elif value is not None and value != ENUM:
            _tell_pydantic(parse_levels, value)
        return value

    @field_validator("option")
    @classmethod
    def _option_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            _tell_pydantic(read_template, value)
        return value

    @field_validator("when", "default_rule")
    @classmethod
    def _expression_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            _tell_pydantic(parse_expression, value)
        return value

    @field_validator("name")
    @classmethod
    def _name_is_one(cls, value: str | None) -> str | None:
        if value is not None and not NAME.fullmatch(value):
            raise ValueError(f"{value!r} is not a parameter name")
        return value


class ParameterTable(Keys):
    """A table ``[parameters.NAME]``; ``on`` has the differences for some libraries."""

    on: dict[str, Keys] = Field(default_factory=dict)

    @field_validator("on")
    @classmethod
    def _libraries_can_be_read(cls, value: dict[str, Keys]) -> dict[str, Keys]:
        for spec in value:
            _tell_pydantic(parse_version, spec)
        return value


class ConstraintTable(BaseModel):
    """A table of ``[[constraints]]``; ``on`` restricts it to some libraries."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rule: str
    reason: str = ""
    on: str | None = None

    @field_validator("rule")
    @classmethod
    def _rule_can_be_read(cls, value: str) -> str:
        _tell_pydantic(parse_expression, value)
        return value

    @field_validator("on")
    @classmethod
    def _library_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            _tell_pydantic(parse_version, value)
        return value


class ArgumentTable(BaseModel):
    """A table of ``[[arguments]]``: words for the program, with ``{name}`` for values."""

    model_config = ConfigDict(extra="forbid", strict=True)

    words: str
    when: str | None = None

    @field_validator("words")
    @classmethod
    def _words_can_be_read(cls, value: str) -> str:
        _tell_pydantic(read_template, value)
        return value

    @field_validator("when")
    @classmethod
    def _condition_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            _tell_pydantic(parse_expression, value)
        return value


class StartTable(BaseModel):
    """A table of ``[[start]]``: a setting that a search tries first, and its source."""

    model_config = ConfigDict(extra="forbid", strict=True)

    setting: str
    source: str = ""

    @field_validator("setting")
    @classmethod
    def _setting_can_be_read(cls, value: str) -> str:
        _tell_pydantic(Setting.parse, value)
        return value


class Definition(BaseModel):
    """One space file; without ``library`` it is for every MPI.

    ``extends`` is the name of a space whose tables it includes (:func:`read_definition`).
    ``requires`` is what an application must declare (its ``tunable``) to be tuned with this space.
    ``app_facts`` are the facts about its input that the application may give. ``derived`` are
    expressions of parameters, facts and earlier derived values. ``start`` are settings to try
    first. ``layout`` says the parameters in the common words of layouts; it decides nothing that is
    launched.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    extends: str | None = None
    library: str | None = None
    requires: str | None = None
    app_facts: list[str] = Field(default_factory=list)
    parameters: dict[str, ParameterTable] = Field(default_factory=dict, validate_default=True)
    derived: dict[str, str] = Field(default_factory=dict)
    arguments: list[ArgumentTable] = Field(default_factory=list)
    constraints: list[ConstraintTable] = Field(default_factory=list)
    start: list[StartTable] = Field(default_factory=list)
    layout: LayoutTable = Field(default_factory=LayoutTable)

    @field_validator("parameters")
    @classmethod
    def _names_are_names(
        cls, value: dict[str, ParameterTable], info: ValidationInfo
    ) -> dict[str, ParameterTable]:
        if not value and info.data.get("extends") is None:
            raise ValueError("expected at least one parameter, or a space that is extended")
        for name, table in value.items():
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a parameter name")
            if not _has_levels(table):
                raise ValueError(f'{name} has no levels; give "levels" or say why it is "absent"')
        return value

    @field_validator("derived")
    @classmethod
    def _derived_can_be_read(cls, value: dict[str, str]) -> dict[str, str]:
        for text in value.values():
            _tell_pydantic(parse_expression, text)
        return value

    @field_validator("library")
    @classmethod
    def _library_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            _tell_pydantic(parse_version, value)
        return value


def read_definition(file: ConfigFile) -> Definition:
    """Parse and validate one space file; raises :class:`UsageError` with file and key.

    A file that extends another has the other's parameters first, then its own. Its own parameters
    and derived values replace the other's of the same name; arguments, constraints and settings to
    try first are added to the other's. Its own library, requirement and facts have precedence over
    the other's.
    """
    definition = _resolve_extends(_own(file.text, file.path), file.path)
    problems = [f"{file.path}: {problem}" for problem in undefined_names(definition)]
    if problems:
        raise UsageError("\n".join(problems), code="space.invalid")
    return definition


@lru_cache(maxsize=64)
def _own(text: str, path: str) -> Definition:
    """The definition of one file without extension. It is cached and shared: nothing changes it."""
    return read_toml(text, path, Definition)


def read_with_mistakes(file: ConfigFile) -> tuple[Definition | None, list[str]]:
    """The valid part of a space file (None if there is none), and all mistakes.

    A mistake that only follows from a reported one (a rule about a table that was left out) is not
    reported.
    """
    definition, mistakes, left_out = read_what_is_right(file.text, file.path, Definition)
    if definition is not None:
        try:
            definition = _resolve_extends(definition, file.path)
        except UsageError as error:
            return definition, [*mistakes, str(error)]
        mistakes += [
            f"{file.path}: {problem}"
            for problem in undefined_names(definition)
            if not left_out & set(re.findall(r"[\w.-]+", problem))
        ]
    return definition, mistakes


def _resolve_extends(own: Definition, path: str, below: tuple[str, ...] = ()) -> Definition:
    """The definition with the tables of the space that it extends, which may extend another.

    ``below`` are the spaces that extend this one; each extends the next.
    """
    if own.extends is None:
        return own
    if not SPACE_NAME.fullmatch(own.extends):
        raise UsageError(
            f"{path}: extends: {own.extends!r} is not the name of a space; expected the name of "
            "one that `autotune space list` shows",
            code="space.extends",
        )
    if own.extends in below:
        way = " extends ".join((*below, own.extends))
        raise UsageError(
            f"{path}: extends: {way}: a circle; expected spaces of which none extends itself",
            code="space.extends",
        )
    text, origin = _text_of(own.extends, path)
    other = _resolve_extends(_own(text, origin), origin, (*below, own.extends))
    inherited_tables = {
        name: t for name, t in other.parameters.items() if name not in own.parameters
    }
    inherited_expressions = {
        name: text for name, text in other.derived.items() if name not in own.derived
    }
    return own.model_copy(
        update={
            "library": own.library or other.library,
            "requires": own.requires or other.requires,
            "app_facts": list(dict.fromkeys([*other.app_facts, *own.app_facts])),
            "parameters": {**inherited_tables, **own.parameters},
            "derived": {**inherited_expressions, **own.derived},
            "arguments": [*other.arguments, *own.arguments],
            "constraints": [*other.constraints, *own.constraints],
            "start": [*own.start, *other.start],
            "layout": other.layout.extended_by(own.layout),
        }
    )


def _text_of(name: str, path: str) -> tuple[str, str]:
    try:
        file = find_config(KIND, name)
    except UsageError as error:
        raise UsageError(f"{path}: extends: {error}", code=error.code) from None
    return file.text, file.path


def _has_levels(table: ParameterTable) -> bool:
    everywhere = table.levels is not None or table.absent is not None
    return everywhere or any(
        k.levels is not None or k.absent is not None for k in table.on.values()
    )


def _tell_pydantic(read: Any, value: Any) -> None:
    """Run one of this package's readers; pydantic collects the ``ValueError`` and adds the key."""
    try:
        read(value)
    except UsageError as error:
        raise ValueError(str(error)) from error


FACTS = ("ranks", "cores", "nodes", "pml")
"""Facts that the caller may give.

``ranks``; ``cores``, the number used by all ranks together (default: one each); ``nodes``, the
number of nodes of the job; ``pml``, Open MPI's component that carries the messages, if the launch
options choose it. In a space with a parameter ``pml``, the parameter's value is used.
"""


def undefined_names(definition: Definition) -> Iterator[str]:
    """The mistakes in names, each with its place and the reason."""
    facts = (*FACTS, *definition.app_facts)
    own_names = {*definition.parameters, *definition.derived}
    for name in definition.derived:
        if name in definition.parameters or name in facts:
            yield f"derived.{name}: a parameter or a fact has this name already; choose another"
    for where, text in expressions(definition):
        names, what = (own_names, "neither a parameter of this file nor a fact")
        if where.endswith(".levels"):
            # Levels are fixed before there is a setting, so they may use only facts.
            names, what = set(), "no fact"
        for name in sorted(parse_expression(text).names - names - set(facts)):
            yield f"{where}: {name} is {what} ({', '.join(facts)})"
    yield from _check_derived_order(definition)
    for where, template in templates(definition):
        for name in Argument(template).places:
            yield from _place(definition, where, name, facts)
    yield from _cores_each(definition)
    yield from definition.layout.mistakes([*own_names, *facts], list(definition.parameters))
    for i, start in enumerate(definition.start):
        for name in sorted(Setting.parse(start.setting).keys() - definition.parameters.keys()):
            yield f"start.{i}.setting: {name} is not a parameter of this file"


def expressions(definition: Definition) -> list[tuple[str, str]]:
    """Every expression, with its key in the file."""
    entries = []
    for where, keys in _tables(definition):
        number = divisor_expression(keys.levels)
        texts = (("when", keys.when), ("default_rule", keys.default_rule), ("levels", number))
        entries += [(f"{where}.{key}", text) for key, text in texts if text]
    entries += [(f"derived.{name}", text) for name, text in definition.derived.items()]
    entries += [
        (f"arguments.{i}.when", a.when) for i, a in enumerate(definition.arguments) if a.when
    ]
    entries += [(f"constraints.{i}.rule", c.rule) for i, c in enumerate(definition.constraints)]
    return entries


def templates(definition: Definition) -> list[tuple[str, str]]:
    """Every template of program words, with its key in the file."""
    entries = [(f"{where}.option", k.option) for where, k in _tables(definition) if k.option]
    entries += [(f"arguments.{i}.words", a.words) for i, a in enumerate(definition.arguments)]
    return entries


def _tables(definition: Definition) -> Iterator[tuple[str, Keys]]:
    for name, table in definition.parameters.items():
        yield f"parameters.{name}", table
        for spec, keys in table.on.items():
            yield f"parameters.{name}.on.{spec}", keys


def _check_derived_order(definition: Definition) -> Iterator[str]:
    undefined = set(definition.derived)
    for name, text in definition.derived.items():
        for other in sorted(parse_expression(text).names & undefined):
            yield f"derived.{name}: {other} must be given before it"
        undefined.discard(name)


def _place(definition: Definition, where: str, name: str, facts: tuple[str, ...]) -> Iterator[str]:
    if name in definition.derived or name in facts:
        return
    if name not in definition.parameters:
        yield f"{where}: {{{name}}} is not a parameter, derived value or fact of this file"
    elif where.startswith("arguments.") and not _always_has_value(
        name, definition.parameters[name]
    ):
        yield f"{where}: {{{name}}} has no value where it is unset; give it a default"


def _always_has_value(name: str, table: ParameterTable) -> bool:
    tables = [table, *table.on.values()]
    return (
        not table.unset
        or is_cores_each(name, table)
        or any(keys.default is not None or keys.default_rule is not None for keys in tables)
    )


def _cores_each(definition: Definition) -> Iterator[str]:
    """The default has one rank per core, so unset threads or workers mean one."""
    for name in CORES_EACH:
        table = definition.parameters.get(name)
        if table is None or not is_cores_each(name, table):
            continue
        if table.default not in (None, 1):
            yield f"parameters.{name}.default: must be 1, since the default is one rank per core"


def is_cores_each(name: str, keys: Keys) -> bool:
    """True if a parameter is the number of cores of each process."""
    return name in CORES_EACH and keys.target in (None, "resource")


_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})*"
_SPEC = re.compile(rf"\s*([a-z]+)\s*((?:(?:^|,|\s)*(?:<=|>=|==|!=|<|>)\s*{_NUMBER}\s*)*)")
_BOUND = re.compile(r"(<=|>=|==|!=|<|>)\s*([0-9.]+)")


def matches(spec: str, library: Library) -> bool:
    """True if the library is of the family and within every bound.

    A bound is compared to its own precision: 4.1.8 satisfies ``==4.1`` and ``<=4.1``. Raises
    :class:`UsageError` if ``spec`` cannot be read.
    """
    family, bounds = parse_version(spec)
    if library.family != family:
        return False
    version = library.version_tuple
    return all(
        _COMPARE[sign]((version + (0,) * len(bound))[: len(bound)], bound) for sign, bound in bounds
    )


def parse_version(spec: str) -> tuple[str, list[tuple[str, tuple[int, ...]]]]:
    """The family and the bounds of a library specification.

    Raises :class:`UsageError` if ``spec`` cannot be read or names an unknown family.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(
            f"{spec!r} does not name an MPI library; expected for example openmpi, "
            "openmpi<5 or openmpi>=4.1,<5",
            code="mpi.series_syntax",
        )
    bounds = [
        (sign, tuple(int(part) for part in number.split(".")))
        for sign, number in _BOUND.findall(match[2])
    ]
    return known_family(match[1]), bounds
