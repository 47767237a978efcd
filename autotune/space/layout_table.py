"""The section ``[layout]`` of a space file, as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field, field_validator

from autotune.errors import UsageError
from autotune.space.expression import parse_expression
from autotune.space.setting import NAME
from autotune.space.vocabulary import BUILT_IN, VOCABULARY


class NamedValues(BaseModel):
    """A word that names the values of one parameter; ``other`` is for values without a name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    of: str
    names: dict[str, str] = Field(default_factory=dict)
    other: str | None = None

    @field_validator("of")
    @classmethod
    def _name_is_one(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} is not a parameter name")
        return value


class LayoutTable(BaseModel):
    """The section ``[layout]`` of a space file.

    ``words`` maps words of the vocabulary to expressions, or to named values of a parameter.
    ``own`` are parameters that stay beside the words although a word may use them, with the reason.
    ``absent`` are words that have no meaning in the program, with the reason. ``facts`` are facts
    of the application's input that only the words use.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    facts: list[str] = Field(default_factory=list)
    words: dict[str, str | NamedValues] = Field(default_factory=dict)
    own: dict[str, str] = Field(default_factory=dict)
    absent: dict[str, str] = Field(default_factory=dict)

    @field_validator("words", "absent")
    @classmethod
    def _words_are_known(cls, value: dict[str, object]) -> dict[str, object]:
        for name in value:
            if name not in VOCABULARY:
                raise ValueError(
                    f"{name!r} is not a word of layouts; the words are {', '.join(VOCABULARY)}"
                )
        return value

    @field_validator("words")
    @classmethod
    def _words_can_be_read(
        cls, value: dict[str, str | NamedValues]
    ) -> dict[str, str | NamedValues]:
        for name, entry in value.items():
            if isinstance(entry, str):
                try:
                    parse_expression(entry)
                except UsageError as error:
                    raise ValueError(f"{name}: {error}") from error
                continue
            texts = [*entry.names.values(), *([entry.other] if entry.other else [])]
            for text in texts:
                if text not in VOCABULARY[name].values:
                    choices = ", ".join(VOCABULARY[name].values) or "numbers"
                    raise ValueError(f"{name}: {text!r} is not one of its values: {choices}")
        return value

    def extended_by(self, own: LayoutTable) -> LayoutTable:
        """This section with another's entries, which replace those of the same name."""
        words = {k: v for k, v in self.words.items() if k not in own.absent}
        absent = {k: v for k, v in self.absent.items() if k not in own.words}
        return LayoutTable(
            facts=list(dict.fromkeys([*self.facts, *own.facts])),
            words={**words, **own.words},
            own={**self.own, **own.own},
            absent={**absent, **own.absent},
        )

    def mistakes(self, names: Sequence[str], parameters: Sequence[str]) -> Iterator[str]:
        """Names that the space does not have, each with its key; ``names`` may be used in
        expressions, and ``parameters`` are those of the space."""
        names_here = {*names, *self.facts, *BUILT_IN}
        for word, entry in self.words.items():
            used = {entry.of} if isinstance(entry, NamedValues) else names_of(entry)
            for name in sorted(used - names_here):
                yield (
                    f"layout.words.{word}: {name} is neither a parameter or fact of this file nor "
                    f"one of {', '.join(BUILT_IN)}"
                )
        for name in sorted(set(self.own) - set(parameters)):
            yield f"layout.own.{name}: {name} is not a parameter of this file"


def names_of(text: str) -> frozenset[str]:
    """The names in the text of an expression."""
    return parse_expression(text).names
