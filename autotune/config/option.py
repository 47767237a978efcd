"""Requests: the options of a command as the fields of a model.

One model defines an option for all its users: the command line (``autotune.cli.requests``), Python
(``autotune.api.options``), the JSON documents of the results database, the reference, and
:meth:`Request.words`, which writes a request as a command line again. A new option is one field.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

from autotune.config.validated import validate
from autotune.errors import UsageError
from autotune.wording import parse_duration


def _same(value: Any) -> Any:
    return value


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


@dataclass(frozen=True)
class Form:
    """How the command line writes a value of a field.

    ``kind`` is the type of the typed value, None if it is the field's. ``read`` converts it to the
    field's value and raises UsageError; ``show`` is its inverse. ``words`` returns the texts to
    type, one for each occurrence of the option.
    """

    kind: Any = None
    read: Callable[[Any], Any] = _same
    show: Callable[[Any], Any] = _same
    words: Callable[[Any], list[str]] = _texts


def _command_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as problem:
        raise UsageError(
            f"--before {text!r} is not understood: {problem}; expected a command with closed "
            "quotations, such as 'rm -f state.cpt'",
            code="before.quotation",
        ) from None


def _pairs(words: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(
                f"-O {word!r} is not understood; expected NAME=VALUE, such as -O population=20",
                code="strategy.option_syntax",
            )
        pairs[name.strip()] = value.strip()
    return pairs


PLAIN = Form()
TEXT = Form(str)
TIME = Form(str, parse_duration, words=lambda seconds: [f"{seconds:g}s"])
"""Seconds, written as 90s, 10m or 2h."""
PERCENT = Form(
    float, lambda percent: percent / 100, lambda share: 100 * share, lambda s: [f"{100 * s:g}"]
)
"""A fraction, written in percent."""
COMMAND = Form(str, _command_words, words=lambda words: [shlex.join(words)])
"""The words of a command, written as one text."""
PAIRS = Form(list[str], _pairs, words=lambda pairs: [f"{n}={v}" for n, v in pairs.items()])
"""Values by name, written as NAME=VALUE."""
PATH = Form(Path, str)
PATHS = Form(list[Path], lambda paths: [str(path) for path in paths])
FilePath = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, PurePath) else v)]
"""A path, which is text in JSON and on the command line, and may be a Path in Python."""


@dataclass(frozen=True)
class CommandOption:
    """How the command line shows a field: ``names`` such as ``--ranks`` and ``-n``; an argument has
    none.

    ``metavar`` is the word for the value. ``help`` may be a function, so that only help waits for
    its imports. ``completion`` names the function in ``autotune.cli.completion`` that completes it.
    A ``late`` option is listed after those of the command itself.
    """

    names: tuple[str, ...]
    metavar: str | None
    help: str | Callable[[], str]
    form: Form = PLAIN
    completion: str | None = None
    late: bool = False


def option(
    default: Any,
    spelling: str,
    help: str | Callable[[], str],
    form: Form = PLAIN,
    *,
    completion: str | None = None,
    late: bool = False,
    **limits: Any,
) -> Any:
    """The default of a field that is an option, as help shows it: ``"--ranks -n N"``, ``"--join"``.

    Without a name it is an argument (``"STUDY"``); ``...`` is the default of a required one.
    ``limits`` are those of :func:`pydantic.Field`.
    """
    words = spelling.split()
    names = tuple(word for word in words if word.startswith("-"))
    metavar = " ".join(words[len(names) :]) or None
    return _marked(default, CommandOption(names, metavar, help, form, completion, late), limits)


late_option = partial(option, late=True)
"""An option listed after those of the command itself."""


@dataclass(frozen=True)
class RequestPart:
    """A field that is itself a request: its options are options of the whole.

    ``instead``: for some of its fields, the fields of the whole whose options replace theirs.
    """

    instead: Mapping[str, tuple[str, ...]]


def part(*without: str, **instead: str | tuple[str, ...]) -> Any:
    """The value of a field that is a :class:`RequestPart`; ``without`` have no option there."""
    others = {name: (one,) if isinstance(one, str) else one for name, one in instead.items()}
    return _marked(..., RequestPart(dict.fromkeys(without, ()) | others), {})


def _marked(default: Any, mark: CommandOption | RequestPart, limits: Mapping[str, Any]) -> Any:
    info: FieldInfo = Field(default, **limits)
    info.metadata.append(mark)
    return info


def same_option(model: type[BaseModel], name: str) -> Any:
    """The default of a field that is an option of another request, too, at its own place here."""
    info = copy(model.model_fields[name])
    info.metadata = [
        replace(mark, late=False) if isinstance(mark, CommandOption) else mark
        for mark in info.metadata
    ]
    return info


class OptionField(NamedTuple):
    """A field with an option; ``path`` leads to it through the parts of a request."""

    path: tuple[str, ...]
    option: CommandOption
    info: FieldInfo

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def is_flag(self) -> bool:
        """True if no value follows the option."""
        return self.info.annotation is bool

    def limit(self, name: str) -> Any:
        """A limit of the field ("ge" or "le"), as typed; None if it has none."""
        found = [getattr(one, name) for one in self.info.metadata if hasattr(one, name)]
        limit = self.option.form.show(found[0]) if found else None
        return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def option_fields(model: type[BaseModel]) -> list[OptionField]:
    """The options of a request and of its parts, in the order of the fields."""
    own: dict[str, OptionField] = {}
    parts: dict[str, RequestPart] = {}
    for name, info in model.model_fields.items():
        for mark in info.metadata:
            if isinstance(mark, CommandOption):
                own[name] = OptionField((name,), mark, info)
            elif isinstance(mark, RequestPart):
                parts[name] = mark
    found: dict[str, OptionField] = {}
    for name, info in model.model_fields.items():
        if name in own:
            found[name] = own[name]
        elif name in parts and isinstance(info.annotation, type):
            for field in option_fields(info.annotation):
                others = parts[name].instead.get(field.name)
                if others is None:
                    found[field.name] = field._replace(path=(name, *field.path))
                else:
                    found |= {other: own[other] for other in others}
    return list(found.values())


def option_field(model: type[BaseModel], name: str) -> OptionField:
    """The option of one field."""
    return next(field for field in option_fields(model) if field.name == name)


class Request(BaseModel):
    """A user's request to a command."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def of(cls, origin: str, **fields: Any) -> Self:
        """A request with these fields; raises UsageError, with ``origin``, for wrong ones."""
        return validate(fields, origin, cls)

    @classmethod
    def read(cls, command: str, values: Mapping[str, Any]) -> Self:
        """The request of a command line: the value of each option, None if it was not given.

        Raises UsageError for a value that an option does not accept.
        """
        data: dict[str, Any] = {}
        for field in option_fields(cls):
            value = values[field.name]
            if value is not None:
                inner = data
                for step in field.path[:-1]:
                    inner = inner.setdefault(step, {})
                inner[field.name] = field.option.form.read(value)
        return cls.of(f"autotune {command}", **cls.arrange(command, data))

    @classmethod
    def arrange(cls, command: str, data: dict[str, Any]) -> dict[str, Any]:
        """The fields for a command line, if an option is not the value of one field.

        Each part gets the name of the command, for its messages.
        """
        for name, info in cls.model_fields.items():
            if any(isinstance(mark, RequestPart) for mark in info.metadata):
                data[name] = {"command": command} | data.get(name, {})
        return data

    def value_at(self, field: OptionField) -> Any:
        """The value of an option; inverse of :meth:`arrange`."""
        value: Any = self
        for step in field.path:
            value = getattr(value, step)
        return value

    def words(self) -> list[str]:
        """The options of a command line for the same request: those that have a value."""
        line: list[str] = []
        for field in option_fields(type(self)):
            value, names = self.value_at(field), field.option.names
            if field.is_flag:
                on, _, off = names[0].partition("/")
                line += [on if value else off] if value != field.info.default else []
            elif names and value is not None:
                for text in field.option.form.words(value):
                    line += [names[0], text]
        return line
