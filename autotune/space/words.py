"""What a setting puts behind the program: words with places for values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.space.nodes import Expr
from autotune.space.setting import Value

_PLACE = re.compile(r"\{([A-Za-z_][\w.\-]*)\}", re.ASCII)


@dataclass(frozen=True)
class Argument:
    """Words of the program's command line, such as ``--local-grid {x}x{y}x{z}``.

    A place holds the name of a parameter, a derived value or a fact.  Given where ``when`` is known
    to be true (None: whenever a parameter in a place, or behind a derived value in one, is set).
    """

    template: str
    when: Expr | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The names in the places, in order."""
        return tuple(_PLACE.findall(self.template))

    def renamed(self, names: Mapping[str, str], when: Expr | None = None) -> Argument:
        """The same words with other names in the places, and this condition."""
        template = _PLACE.sub(lambda m: f"{{{names.get(m[1], m[1])}}}", self.template)
        return Argument(template, when)

    def text(self, value: Callable[[str], Value | None]) -> str:
        """The words with values in the places, quoted as a shell would want them.

        Raises :class:`UsageError` where a value is not known.
        """

        def fill(match: re.Match[str]) -> str:
            found = value(match[1])
            if found is None:
                raise UsageError(
                    f"the program's argument {self.template!r} needs {match[1]}, which has no "
                    "value here; give it a value or a default"
                )
            return str(found)

        # Split before the values are put in: a value with a blank stays one word.
        return shlex.join(_PLACE.sub(fill, word) for word in shlex.split(self.template))


def read_template(text: str) -> Argument:
    """Check the words of a space file; raises :class:`UsageError` without the place."""
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise UsageError(f"{text!r} cannot be split into words: {problem}") from None
    if not words:
        raise UsageError("the text is empty; expected something like '--block {block}'")
    if re.search(r"[{}]", _PLACE.sub("", text)):
        raise UsageError(
            f"{text!r} has a brace that is not part of a placeholder; a placeholder is "
            "written {name}"
        )
    return Argument(text)


def usual_option(name: str) -> str:
    """The option of a program for a parameter of this name: ``--block-size {block_size}``."""
    return f"--{name.replace('_', '-')} {{{name}}}"
