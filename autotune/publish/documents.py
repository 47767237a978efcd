"""The document of ``verify-published``: the state of published files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from autotune.document import Document, to_json
from autotune.json_types import Unchecked
from autotune.notes import Note


class ExpiredFile(Document):
    """A published file that has expired, with the commands for it."""

    path: str
    family: str
    proven_with: str
    installed: str
    commands: dict[str, str]


class FileRow(Document):
    """The state of one published file."""

    path: str
    in_force: bool | None
    refused: bool
    code: str | None
    """What is wrong with the file; null if it is in force or unknown."""
    why: str
    format: str | None
    source: str | None
    unchecked: Unchecked
    expired: ExpiredFile | None
    unsafe: Note | None


class RecheckRow(TypedDict):
    """A comparison of published values with the default on one program; with what it has shown."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    source: str
    program: str
    status: str
    still_better: bool | None
    words: str


class RenewalRow(Document):
    """What became of an expired file."""

    path: str
    renewed: bool
    words: str


@dataclass
class VerifiedFiles:
    """The state of published files."""

    schema_: Annotated[Literal["autotune-verified-1"], Field(alias="schema")] = field(
        default="autotune-verified-1", kw_only=True
    )
    ok: bool
    files: list[FileRow]
    comparisons: list[RecheckRow]
    renewals: list[RenewalRow]

    def to_json(self) -> dict[str, Any]:
        """The published form, in JSON types."""
        return to_json(self)
