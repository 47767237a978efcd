"""TOML files as pydantic models, with errors that name the file, the key and what was expected."""

from __future__ import annotations

import difflib
import tomllib
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autotune.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)


def read_toml(text: str, origin: str, model: type[Model]) -> Model:
    """Parse and validate; ``origin`` is the file's name in messages.

    Raises :class:`UsageError`. Models should forbid unknown keys: the message suggests the right
    key.
    """
    return validate(_parse(text, origin), origin, model)


def _parse(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin}: not valid TOML: {error}", code="config.syntax") from error


def validate(data: Any, origin: str, model: type[Model]) -> Model:
    """Validate data that is already parsed; raises :class:`UsageError` with every mistake found."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UsageError("\n".join(_lines(error, origin, model)), code="config.invalid") from error


def read_what_is_right(
    text: str, origin: str, model: type[Model]
) -> tuple[Model | None, list[str], set[str]]:
    """Read the valid part of a file, so that a checker can report all mistakes at once.

    Returns the model (None if nothing can be read), the mistakes, and the names of the tables that
    were left out. A table with a mistake is left out. Mistakes that only follow from such an
    omission are not reported.
    """
    try:
        data = _parse(text, origin)
    except UsageError as error:
        return None, [str(error)], set()
    mistakes: list[str] = []
    left_out: set[str] = set()
    while True:
        try:
            return model.model_validate(data), mistakes, left_out
        except ValidationError as error:
            mistakes += [] if mistakes else _lines(error, origin, model)
            # A mistake takes out the table in which it is.
            places = sorted({problem["loc"][:2] for problem in error.errors()}, key=_backwards)
            if not sum(_drop(data, place) for place in places):
                return None, mistakes, left_out
            left_out |= {str(place[-1]) for place in places}


def _lines(error: ValidationError, origin: str, model: type[BaseModel]) -> list[str]:
    """Every mistake; a mistake of a whole table is left out if parts of it have mistakes."""
    problems = error.errors()
    inner = {p["loc"][:end] for p in problems for end in range(1, len(p["loc"]))}
    return [_tell(origin, dict(p), model) for p in problems if p["loc"] not in inner]


Place = tuple[str | int, ...]


def _backwards(place: Place) -> tuple[str, ...]:
    """Sort key that puts later elements of a list first, so that the others keep their numbers."""
    return tuple(f"{-part:06}" if isinstance(part, int) else part for part in place)


def _drop(data: Any, place: Place) -> bool:
    """Remove a part of ``data``; returns True if it existed."""
    for part in place[:-1]:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return False
    try:
        del data[place[-1]]
    except (LookupError, TypeError):
        return False
    return True


def _tell(origin: str, problem: dict[str, Any], model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {where}: unknown key{_hint(problem['loc'], model)}"
    if problem["type"] == "missing":
        return f"{origin}: {where}: this key is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{origin}: {where}: {message} (found {_short_repr(problem['input'])})"


def _short_repr(value: object) -> str:
    """A value for a message; Python refuses to write numbers with thousands of digits."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a number of too many digits"


def _hint(place: Place, model: type[BaseModel]) -> str:
    """A similar key for an unknown one, or where the key is allowed and which are allowed here."""
    name, allowed_keys = str(place[-1]), _keys_at(place[:-1], model)
    near = difflib.get_close_matches(name, sorted(allowed_keys), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    other_tables = [where for where, keys in _tables(model) if name.lower() in keys]
    other = f" here ({other_tables[0]} has one)" if other_tables else ""
    return f"{other}; keys here are {', '.join(sorted(allowed_keys))}"


def _keys_at(place: Place, model: type[BaseModel]) -> set[str]:
    """The keys that are allowed at a place of the file."""
    models, parts = [model], list(place)
    while parts:
        part = str(parts.pop(0))
        fields = [m.model_fields[part] for m in models if part in m.model_fields]
        inner = [m for field in fields for m in _models_in(field.annotation)]
        if not inner:
            break
        if any(not isinstance(field.annotation, type) for field in fields):
            parts = parts[1:]  # Skip the name or number of one of several tables.
        models = inner
    return {key for m in models for key in m.model_fields}


def _tables(model: type[BaseModel], where: str = "") -> list[tuple[str, set[str]]]:
    """Every kind of table in a file, as it is written (``[parameters.NAME]``), and its keys."""
    tables = [(f"[{where}]" if where else "the top of the file", set(model.model_fields))]
    for name, field in model.model_fields.items():
        for inner in _models_in(field.annotation):
            origin = getattr(field.annotation, "__origin__", None)
            below = f"{where}.{name}".lstrip(".") + (".NAME" if origin is dict else "")
            tables += _tables(inner, f"[{below}]" if origin in (list, tuple) else below)
    return tables


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in _models_in(part)]
