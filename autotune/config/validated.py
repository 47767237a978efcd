"""TOML into a pydantic model, with errors that name the file, the key and what was expected."""

from __future__ import annotations

import difflib
import tomllib
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autotune.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)


def read_toml(text: str, origin: str, model: type[Model]) -> Model:
    """Parse and validate; ``origin`` is the file's name for messages.

    Raises :class:`UsageError`.  Models should forbid unknown keys: those get a suggestion here.
    """
    return validate(_parsed(text, origin), origin, model)


def _parsed(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin}: not valid TOML: {error}") from error


def validate(data: Any, origin: str, model: type[Model]) -> Model:
    """Validate data that is already parsed; raises :class:`UsageError` with every mistake found."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UsageError("\n".join(_lines(error, origin, model))) from error


def read_what_is_right(
    text: str, origin: str, model: type[Model]
) -> tuple[Model | None, list[str], set[str]]:
    """What is left of a file without its mistakes, the mistakes, and the names of tables left out.

    None where nothing can be read.  A checker goes on with the rest and tells all at once; what is
    wrong only because something was left out is not told.
    """
    try:
        data = _parsed(text, origin)
    except UsageError as error:
        return None, [str(error)], set()
    told: list[str] = []
    left_out: set[str] = set()
    while True:
        try:
            return model.model_validate(data), told, left_out
        except ValidationError as error:
            told += [] if told else _lines(error, origin, model)
            # With a mistake goes the table in which it stands.
            places = sorted({problem["loc"][:2] for problem in error.errors()}, key=_backwards)
            if not sum(_drop(data, place) for place in places):
                return None, told, left_out
            left_out |= {str(place[-1]) for place in places}


def _lines(error: ValidationError, origin: str, model: type[BaseModel]) -> list[str]:
    """Every mistake; of a table with mistakes in it nothing is told as a whole."""
    problems = error.errors()
    inner = {p["loc"][:end] for p in problems for end in range(1, len(p["loc"]))}
    return [_tell(origin, dict(p), model) for p in problems if p["loc"] not in inner]


Place = tuple[str | int, ...]


def _backwards(place: Place) -> tuple[str, ...]:
    """Later elements of a list go first, so that the others keep their numbers."""
    return tuple(f"{-part:06}" if isinstance(part, int) else part for part in place)


def _drop(data: Any, place: Place) -> bool:
    """Whether there was such a part to take out."""
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
    return f"{origin}: {where}: {message} (found {_shown(problem['input'])})"


def _shown(value: object) -> str:
    """A value for a message; Python refuses to write numbers of thousands of digits."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a number of too many digits"


def _hint(place: Place, model: type[BaseModel]) -> str:
    """What may have been meant by an unknown key, or where it may stand and what may stand here."""
    name, here = str(place[-1]), _keys_at(place[:-1], model)
    near = difflib.get_close_matches(name, sorted(here), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    elsewhere = [where for where, keys in _tables(model) if name.lower() in keys]
    other = f" here ({elsewhere[0]} has one)" if elsewhere else ""
    return f"{other}; keys here are {', '.join(sorted(here))}"


def _keys_at(place: Place, model: type[BaseModel]) -> set[str]:
    """The keys that may stand at a place of the file."""
    found, parts = [model], list(place)
    while parts:
        part = str(parts.pop(0))
        fields = [m.model_fields[part] for m in found if part in m.model_fields]
        inner = [m for field in fields for m in _models_in(field.annotation)]
        if not inner:
            break
        if any(not isinstance(field.annotation, type) for field in fields):
            parts = parts[1:]  # The name or number of one of several tables.
        found = inner
    return {key for m in found for key in m.model_fields}


def _tables(model: type[BaseModel], where: str = "") -> list[tuple[str, set[str]]]:
    """Every kind of table in a file and its keys, as it is written: ``[parameters.NAME]``."""
    found = [(f"[{where}]" if where else "the top of the file", set(model.model_fields))]
    for name, field in model.model_fields.items():
        for inner in _models_in(field.annotation):
            origin = getattr(field.annotation, "__origin__", None)
            below = f"{where}.{name}".lstrip(".") + (".NAME" if origin is dict else "")
            found += _tables(inner, f"[{below}]" if origin in (list, tuple) else below)
    return found


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in _models_in(part)]
