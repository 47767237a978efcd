"""The card of a dataset, ``card.toml``: its content, its origin, and how to measure it again.

:func:`to_toml` writes plain data as TOML, for cards and recorded spaces, because Python's library
only reads TOML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.names import ConfigName, PlainName, is_plain
from autotune.notes import Note
from autotune.space import InactiveParameters, Setting, Space
from autotune.wording import MAY_BE_OTHERS, UNGUARDED, count
from runner.files import MIB, read_text
from runner.machine import Machine

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(data: Mapping[str, Any]) -> str:
    """The text of a table; None values are left out.

    Nested mappings become tables, non-empty lists of mappings become arrays of tables.  Raises
    TypeError for a value that TOML does not have.
    """
    return "\n".join(_table(data, ())).lstrip("\n") + "\n"


def _table(data: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines = []
    plain = {k: v for k, v in data.items() if v is not None and not _is_nested(v)}
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in data.items():
        inside = (*place, key)
        name = ".".join(map(_key, inside))
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", *_table(value, inside)]
        elif _is_nested(value):
            for item in value:
                lines += ["", f"[[{name}]]", *_table(item, inside)]
    return lines


def _is_nested(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are valid in TOML.  JSON leaves one character unescaped that TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} cannot be written as TOML")


SCHEMA = 1
CARD = "card.toml"
LARGEST = 4 * MIB
"""Largest card in bytes."""
Kind = Literal["grid", "explore"]
Split = Literal["design", "report"]
_SCHEMA_LINE = re.compile(r"^\s*schema\s*=\s*([0-9]{1,9})\s*$", re.MULTILINE)


def _names_files(key: str) -> str:
    # A shard's file is CELL.BLOCK.parquet, so the key of a cell has no dot.
    if not is_plain(key) or not {".", "+"}.isdisjoint(key) or key.startswith("_"):
        raise ValueError("must be letters, digits, _ and - only, because files are named by it")
    return key


def _setting_key(text: str) -> str:
    try:
        return Setting.parse(text).key
    except UsageError as problem:
        raise ValueError(str(problem)) from None


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Conditions = Annotated[str, AfterValidator(_setting_key)]
CellKey = Annotated[str, AfterValidator(_names_files)]


class CardModel(BaseModel):
    """Base class of the tables of a card; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedMachine(CardModel):
    """The machine of the runs. Times may be compared if ``fingerprint`` is equal."""

    fingerprint: str
    cpu_model: str = ""
    cores: int = Field(default=0, ge=0)
    memory_bytes: int = Field(default=0, ge=0)
    kernel: str = ""
    virtualised: str = ""

    @classmethod
    def of(cls, machine: Machine) -> RecordedMachine:
        """The machine as recorded on a card."""
        return cls(
            fingerprint=machine.fingerprint,
            cpu_model=machine.cpu_model,
            cores=machine.cores,
            memory_bytes=machine.memory_bytes,
            kernel=machine.kernel,
            virtualised=machine.virtualised,
        )


class Link(CardModel):
    """The link between the nodes of a testbed: seconds each way, and bits per second (0:
    unlimited)."""

    latency_s: float = Field(ge=0)
    rate_bps: float = Field(ge=0)


class Cell(CardModel):
    """One program with its input and number of ranks, on which settings are compared.

    ``args`` replace the arguments of the input unless None.  ``facts`` are the values that rules of
    the space use (ranks, cores, nodes, ...).  ``inactive_under`` maps conditions, written as a
    setting, to the parameters that were inactive under them: settings that differ only in those are
    one setting.  ``blocks``: number of blocks of the complete cell (0: not known).  ``rejected``:
    number of runs rejected for foreign load.  ``unguarded``: the blocks that were measured without
    the guard.  ``programs``: SHA-256 of the executables that the ranks ran, in order (empty: none
    was seen).  ``wire``: the link between the nodes, if it is known.
    """

    key: CellKey
    app: ConfigName
    input: str = ""
    args: tuple[str, ...] | None = None
    ranks: int = Field(ge=1, le=1_000_000)
    cluster: ConfigName = "local"
    split: Split = "design"
    note: str = ""
    facts: dict[str, int | float | str] = Field(default_factory=dict)
    inactive_under: dict[Conditions, tuple[str, ...]] | None = None
    blocks: int = Field(default=0, ge=0)
    rejected: int = Field(default=0, ge=0)
    unguarded: tuple[int, ...] = ()
    programs: tuple[Digest, ...] = ()
    wire: Link | None = None

    def idle(self, space: Space) -> InactiveParameters:
        """The parameters known to be inactive in this cell, for that space."""
        parameters = InactiveParameters(space)
        for conditions, names in (self.inactive_under or {}).items():
            parameters.learn(names, Setting.parse(conditions))
        return parameters


class Card(CardModel):
    """The whole card.  Times in seconds; ``protocol`` are sentences for readers.

    ``plan`` is the name of the exploration plan, empty if it is the name of the dataset.
    """

    schema_: int = Field(default=SCHEMA, alias="schema")
    name: PlainName
    plan: str = ""
    kind: Kind
    title: str = ""
    why: str = ""
    date: str = ""
    machine: RecordedMachine
    mpi: str = ""
    protocol: tuple[str, ...] = ()
    planned_s: float = Field(default=0.0, ge=0)
    measured_s: float = Field(default=0.0, ge=0)
    regenerate: str = ""
    cells: tuple[Cell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _cells_differ(self) -> Card:
        keys = [cell.key for cell in self.cells]
        duplicates = sorted({key for key in keys if keys.count(key) > 1})
        if duplicates:
            raise ValueError(f"two cells have the key {', '.join(duplicates)}")
        return self

    def text(self) -> str:
        """The card as TOML."""
        data = self.model_dump(by_alias=True, exclude_none=True)
        for cell in data["cells"]:
            if not cell["unguarded"]:
                del cell["unguarded"]
        return to_toml(data)

    @property
    def guard_note(self) -> Note | None:
        """The cells measured without the guard; None if there are none."""
        cells = [
            f"{cell.key} ({len(cell.unguarded)} of {count(cell.blocks, 'block')})"
            for cell in self.cells
            if cell.unguarded
        ]
        if not cells:
            return None
        words = f"{UNGUARDED}: {', '.join(cells)}; {MAY_BE_OTHERS}"
        keys = [cell.key for cell in self.cells if cell.unguarded]
        return Note("guard.off", words, {"cells": keys})


def read_card(folder: Path) -> Card:
    """The card of a dataset's folder; raises UsageError if it is missing, wrong or too new."""
    path = folder / CARD
    try:
        text = read_text(path, LARGEST)
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(
            f"{folder} is not a dataset: cannot read {CARD} ({reason}); expected a folder "
            "that autotune explore has written",
            code="dataset.unreadable",
        ) from None
    # This comes before the validation, which would only report the keys of a newer version as
    # unknown.
    schema = _SCHEMA_LINE.search(text)
    if schema is not None and int(schema[1]) > SCHEMA:
        raise UsageError(
            f"{path}: schema = {schema[1]} was written by a newer autotune; this one reads "
            f"up to {SCHEMA}: update autotune",
            code="dataset.version",
        )
    return read_toml(text, str(path), Card)
