"""What a space file says, validated but not yet resolved against a library."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from autotune.config.find import ConfigFile
from autotune.config.validated import read_toml, read_what_is_right
from autotune.errors import UsageError
from autotune.space.expression import parse as parse_expression
from autotune.space.levels import divided, parse_levels
from autotune.space.mentions import problems
from autotune.space.parameter import Target
from autotune.space.setting import NAME, Setting
from autotune.space.version import parse as parse_version
from autotune.space.words import read_template

ENUM = "enum"
"""In place of levels: whatever the running library enumerates."""


class Keys(BaseModel):
    """Everything that can be said about a parameter, in general or for one library."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str | None = None
    levels: Any = None
    exclude: list[int | str] = Field(default_factory=list)
    target: Target | None = None
    default: bool | int | float | str | None = None
    default_rule: str | None = None
    unset: bool = True
    when: str | None = None
    implies: dict[str, bool | int | float | str] = Field(default_factory=dict)
    option: str | None = None
    help: str = ""
    absent: str | None = None
    optional: bool = False

    @field_validator("levels")
    @classmethod
    def _levels_can_be_read(cls, value: Any) -> Any:
        if (number := divided(value)) is not None:
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
    """``[parameters.NAME]``; ``on`` holds what differs for some libraries."""

    on: dict[str, Keys] = Field(default_factory=dict)

    @field_validator("on")
    @classmethod
    def _libraries_can_be_read(cls, value: dict[str, Keys]) -> dict[str, Keys]:
        for spec in value:
            _tell_pydantic(parse_version, spec)
        return value


class ConstraintTable(BaseModel):
    """One of ``[[constraints]]``; ``on`` restricts it to some libraries."""

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
    """One of ``[[arguments]]``: words for the program, with ``{name}`` for values."""

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
    """One of ``[[start]]``: a setting that is known to be worth trying, and from where."""

    model_config = ConfigDict(extra="forbid", strict=True)

    setting: str
    source: str = ""

    @field_validator("setting")
    @classmethod
    def _setting_can_be_read(cls, value: str) -> str:
        _tell_pydantic(Setting.parse, value)
        return value


class Definition(BaseModel):
    """One space file.  ``library`` names the MPI it is for; without it any will do.

    ``requires`` is what an application must declare (its ``tunable``) to be tuned with it,
    ``app_facts`` what the application may tell about its input.  ``derived`` are expressions of
    parameters, facts and the derived values before them.  ``start`` are settings to try first.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    library: str | None = None
    requires: str | None = None
    app_facts: list[str] = Field(default_factory=list)
    parameters: dict[str, ParameterTable] = Field(min_length=1)
    derived: dict[str, str] = Field(default_factory=dict)
    arguments: list[ArgumentTable] = Field(default_factory=list)
    constraints: list[ConstraintTable] = Field(default_factory=list)
    start: list[StartTable] = Field(default_factory=list)

    @field_validator("parameters")
    @classmethod
    def _names_are_names(cls, value: dict[str, ParameterTable]) -> dict[str, ParameterTable]:
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
    """Parse and validate one space file; raises :class:`UsageError` naming file and key."""
    definition = read_toml(file.text, file.path, Definition)
    found = [f"{file.path}: {problem}" for problem in problems(definition)]
    if found:
        raise UsageError("\n".join(found))
    return definition


def read_with_mistakes(file: ConfigFile) -> tuple[Definition | None, list[str]]:
    """What is left of a space file without its mistakes, and all of them; None where nothing is.

    What only follows from a mistake that is told (a rule about a table left out) is not told.
    """
    definition, told, left_out = read_what_is_right(file.text, file.path, Definition)
    if definition is not None:
        told += [
            f"{file.path}: {problem}"
            for problem in problems(definition)
            if not left_out & set(re.findall(r"[\w.-]+", problem))
        ]
    return definition, told


def _has_levels(table: ParameterTable) -> bool:
    everywhere = table.levels is not None or table.absent is not None
    return everywhere or any(
        k.levels is not None or k.absent is not None for k in table.on.values()
    )


def _tell_pydantic(read: Any, value: Any) -> None:
    """Run our own reader; pydantic collects ``ValueError`` and adds the key."""
    try:
        read(value)
    except UsageError as error:
        raise ValueError(str(error)) from error
