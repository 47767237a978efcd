"""Types of the fields of documents (:mod:`autotune.document`).

This module does without pydantic, whose import takes half as long as a short command: dataclasses
and typed dictionaries become documents only where one is written as JSON or read from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typing_extensions import TypedDict

from autotune.notes import Note


@dataclass(frozen=True)
class JsonType:
    """The JSON Schema of a type, in place of the one that pydantic derives."""

    name: str | tuple[str, ...]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": self.name if isinstance(self.name, str) else list(self.name)}


@dataclass(frozen=True)
class Described:
    """Describes a type in the JSON Schema."""

    text: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(handler(core_schema)) | {"description": self.text}


Number = Annotated[int | float, JsonType("number")]
"""A number that is written as it is: 1 stays 1 and does not become 1.0."""
ParameterValue = Annotated[int | float | str, JsonType(("string", "number"))]
"""The value of a parameter."""
ValuesByName = dict[str, ParameterValue]
"""A setting: values by parameter; {} is the default."""
Ends = tuple[Number | None, Number | None]
"""Both ends of an interval; None if it is open on that side."""
Unchecked = Annotated[
    list[Note], Described("Why the results were not checked; empty if they were.")
]


class LibraryName(TypedDict):
    """An MPI library."""

    name: str
    version: str
