"""Documents: the models for the output of commands with ``--json``.

A document is a model, and its JSON Schema is derived from it (:mod:`autotune.schemas`).  Its parts
are models or plain dataclasses; a dataclass is part of a document as it is.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from operator import index
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema


class _OmitNone:
    """Marks a key that is omitted if its field is None, so that the key is never null."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema = dict(handler(core_schema))
        others = [one for one in schema.pop("anyOf") if one.get("type") != "null"]
        return schema | (others[0] if len(others) == 1 else {"anyOf": others})


Part = TypeVar("Part")
Omitted = Annotated[Part | None, _OmitNone(), Field(exclude_if=lambda value: value is None)]
"""A field whose key is omitted if it is None."""


_CONFIG = ConfigDict(
    extra="forbid",
    validate_by_name=True,
    serialize_by_alias=True,
    ser_json_inf_nan="constants",
)
"""How documents are written and read."""


class Document(BaseModel):
    """A document, or a part of one: the fields are its keys, in their order.

    The text below a field describes its key in the schema (:func:`schema_of`).
    """

    model_config = _CONFIG | ConfigDict(frozen=True, defer_build=True)

    def to_json(self) -> dict[str, Any]:
        """The published form, in types that JSON has."""
        return self.model_dump(mode="json", warnings=False, fallback=index)


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Of a list, because pydantic refuses a configuration beside a bare dataclass.
    return TypeAdapter(list[kind], config=_CONFIG)


def to_json(value: Any, *without: str) -> dict[str, Any]:
    """A dataclass that is a document, in types that JSON has; some fields can be left out.

    An integer of numpy is one. Raises TypeError for a value that JSON cannot hold.
    """
    kind: Any = type(value)
    left_out = {"__all__": set(without)}
    dumps = _adapter(kind).dump_python(
        [value], mode="json", exclude=left_out, warnings=False, fallback=index
    )
    return dict(dumps[0])


def from_json(kind: type[Part], data: Any) -> Part:
    """Inverse of :func:`to_json`; raises ValueError, which names the first damage."""
    model: Any = kind
    try:
        parts: list[Part] = _adapter(model).validate_python([data])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(f"{place}: {first['msg']}") from None
    return parts[0]


class ErrorDocument(Document):
    """What a command writes that fails."""

    schema_: Literal["autotune-error-1"] = Field(default="autotune-error-1", alias="schema")
    code: str = Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")
    message: str
    exit_code: Literal[1, 2]


class _OutputSchema(GenerateJsonSchema):
    """The schema of what is written: every key is there, unless it is :data:`Omitted`.

    It has no titles of fields, which would repeat their names, and no defaults.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if field["type"] == "typed-dict-field":
            return bool(field.get("required", total))
        return field.get("serialization_exclude_if") is None

    def default_schema(self, schema: Any) -> dict[str, Any]:
        schema_of_value: dict[str, Any] = self.generate_inner(schema["schema"])
        return schema_of_value


def _texts(kind: type[Document]) -> dict[str, str]:
    """The text below each field in the source of a class; none for a class without source."""
    try:
        source = inspect.getsource(kind)
    except OSError:  # create_model made the class.
        return {}
    body = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in itertools.pairwise(body.body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = inspect.cleandoc(words)
    return found


def _describe(parent: type[Document]) -> None:
    """Give the fields of the classes that derive from one the texts below them.

    pydantic would read them where a class is made, and every command would take the time.
    """
    for kind in parent.__subclasses__():
        _describe_fields(kind)
        _describe(kind)


@functools.cache
def _describe_fields(kind: type[Document]) -> None:
    texts: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if parent is not Document and issubclass(parent, Document):
            texts |= _texts(parent)
    for name, field in kind.model_fields.items():
        field.description = field.description or texts.get(name)
    kind.model_config["use_attribute_docstrings"] = True  # for its parts that are dataclasses
    kind.model_rebuild(force=True, raise_errors=False)


def schema_of(model: Any, title: str) -> dict[str, Any]:
    """The JSON Schema of the output for ``model``: a model, a dataclass, or a list of such."""
    _describe(Document)
    adapter = TypeAdapter(list[model], config=_CONFIG | ConfigDict(use_attribute_docstrings=True))
    schema = adapter.json_schema(mode="serialization", schema_generator=_OutputSchema)
    parts, root = schema.get("$defs", {}), schema["items"]
    if "$ref" in root:
        root = parts.pop(root["$ref"].removeprefix("#/$defs/"))
    head: dict[str, Any] = {"$schema": _OutputSchema.schema_dialect} | root | {"title": title}
    return head | {"$defs": parts} if parts else head
