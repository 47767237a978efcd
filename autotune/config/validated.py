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
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin}: not TOML: {error}") from error
    return validate(data, origin, model)


def validate(data: Any, origin: str, model: type[Model]) -> Model:
    """Validate data that is already parsed; raises :class:`UsageError` with every mistake found."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        keys = _all_keys(model, set())
        problems = [_tell(origin, dict(problem), keys) for problem in error.errors()]
        raise UsageError("\n".join(problems)) from error


def _tell(origin: str, problem: dict[str, Any], keys: set[str]) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(problem["loc"][-1]), sorted(keys), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; keys are {', '.join(sorted(keys))}"
        return f"{origin}: {where}: unknown key{hint}"
    if problem["type"] == "missing":
        return f"{origin}: {where}: this key is needed and missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{origin}: {where}: {message} (found {_shown(problem['input'])})"


def _shown(value: object) -> str:
    """A value for a message; Python refuses to write numbers of thousands of digits."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a number of too many digits"


def _all_keys(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[str]:
    """The keys of a model and of every model inside it."""
    seen.add(model)
    keys = set(model.model_fields)
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            if inner not in seen:
                keys |= _all_keys(inner, seen)
    return keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in _models_in(part)]
