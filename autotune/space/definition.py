"""What a space file says, validated but not yet resolved against a library."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from autotune.config.find import ConfigFile
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.space.expression import parse as parse_expression
from autotune.space.levels import parse_levels
from autotune.space.parameter import Target
from autotune.space.setting import NAME
from autotune.space.version import parse as parse_version

FACTS = ("ranks", "cores", "nodes")
"""What the caller may tell about the situation: MPI ranks; cores and nodes available to the job."""

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
    help: str = ""
    absent: str | None = None
    optional: bool = False

    @field_validator("levels")
    @classmethod
    def _levels_can_be_read(cls, value: Any) -> Any:
        if value is not None and value != ENUM:
            _tell_pydantic(parse_levels, value)
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


class Definition(BaseModel):
    """One space file.  ``library`` names the MPI it is for; without it any will do."""

    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    library: str | None = None
    parameters: dict[str, ParameterTable] = Field(min_length=1)
    constraints: list[ConstraintTable] = Field(default_factory=list)

    @field_validator("parameters")
    @classmethod
    def _names_are_names(cls, value: dict[str, ParameterTable]) -> dict[str, ParameterTable]:
        for name, table in value.items():
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a parameter name")
            if not _has_levels(table):
                raise ValueError(f'{name} has no levels; give "levels" or say why it is "absent"')
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
    known = {*definition.parameters, *FACTS}
    for where, text in expressions(definition):
        strange = sorted(parse_expression(text).names - known)
        if strange:
            raise UsageError(
                f"{file.path}: {where}: {strange[0]} is neither a parameter of this file nor a "
                f"fact ({', '.join(FACTS)})"
            )
    return definition


def expressions(definition: Definition) -> list[tuple[str, str]]:
    """Every expression with the key it stands at."""
    found = []
    for name, table in definition.parameters.items():
        places: list[tuple[str, Keys]] = [(f"parameters.{name}", table)]
        places += [(f"parameters.{name}.on.{spec}", keys) for spec, keys in table.on.items()]
        for where, keys in places:
            for key, text in (("when", keys.when), ("default_rule", keys.default_rule)):
                found += [(f"{where}.{key}", text)] if text else []
    found += [(f"constraints.{i}.rule", c.rule) for i, c in enumerate(definition.constraints)]
    return found


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
