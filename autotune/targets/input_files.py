"""Input files of a run: the application's texts with the values of a setting.

A value is data.  It is a short word or number, and is written into the run's own folder only.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from autotune.config.app import App
from autotune.config.input_files import PLACE
from autotune.errors import UsageError
from autotune.space import Space
from autotune.space.expression import parse_expression
from autotune.space.resolve import spelled_out
from autotune.space.space import Constraint
from runner.files import MIB, read_bytes
from runner.fresh_copy import write_inputs

FILE = "file"
"""The kind of parameters whose values stand in input files."""
_VALUE = re.compile(r"[A-Za-z0-9_.+-]{1,64}", re.ASCII)


def input_texts(
    app: App, input_name: str | None, ranks: int, values: Mapping[str, str]
) -> dict[str, str]:
    """The input files of a run by name; ``values`` are those of the setting.

    Raises UsageError for a placeholder without a value, and for a value that is no short word.
    """
    texts = app.texts(input_name)
    if not texts:
        return {}
    for name, text in values.items():
        if not _VALUE.fullmatch(text):
            raise UsageError(
                f"{name}={text!r} cannot stand in an input file; expected 1 to 64 letters, digits "
                "and _ . + -",
                code="parameter.file_value",
            )
    texts_by_place = {"ranks": f"{ranks}", "input": input_name or app.usual_input}
    # As in a command, a value of the input may depend on the number of ranks.
    texts_by_place |= {
        n: v.replace("{ranks}", f"{ranks}") for n, v in app.input(input_name).values.items()
    }
    texts_by_place |= values

    def value(match: re.Match[str]) -> str:
        if match[1] not in texts_by_place:
            raise UsageError(
                f"app {app.name!r}: {match[0]} in an input file has no value; known: "
                f"{', '.join(sorted(texts_by_place))}.  Give the input a value of that name, which "
                "holds where a setting has none",
                code="app.placeholder_unknown",
            )
        return texts_by_place[match[1]]

    return {name: PLACE.sub(value, text) for name, text in texts.items()}


def write_input_folder(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write input files, by name, for a user into ``folder``, and return it.

    If it has something else under one of these names, it stays as it is, and the files are in
    ``folder-2``, or the next such folder. Raises OSError, and RunnerError as ``write_inputs``.
    """
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    places = itertools.chain([folder], numbered)
    place = next(p for p in places if all(_is_free(p / name, texts[name]) for name in texts))
    place.mkdir(parents=True, exist_ok=True)
    write_inputs(place, texts)
    return place


def _is_free(path: Path, text: str) -> bool:
    """Whether nothing is there, or a file with this text."""
    if not os.path.lexists(path):
        return True
    try:
        return read_bytes(path, MIB) == text.encode()
    except OSError:
        return False


def with_input_rules(space: Space, app: App, input_name: str | None = None) -> Space:
    """The space with the rules by which the application solves the same problem.

    Raises UsageError for a parameter of an input file that the application does not declare, for
    one that can change the result if nothing verifies it, and for a default that is not the value
    of the input.
    """
    names = [parameter.name for parameter in space if parameter.target == FILE]
    if unknown := [name for name in names if name not in app.placeholders]:
        declared = ", ".join(app.placeholders) or "none"
        raise UsageError(
            f"space {space.name} has parameters of input files that {app.name!r} does not declare: "
            f"{', '.join(unknown)}; declared: {declared}.\nWrite placeholders and input_files into "
            "the application's file configs/apps/NAME.toml and use --app NAME "
            "(docs/howto/application-owner.md)",
            code="space.placeholder_unknown",
        )
    changing = [name for name in names if app.placeholders[name] == "result"]
    if changing and app.verify is None:
        raise UsageError(
            f"{', '.join(changing)} can change the result of {app.name!r}, and nothing verifies "
            "it: a faster wrong result would win.  Give --verify RE, or verify in the "
            "application's file",
            code="app.verify_missing",
        )
    if not names:
        return space
    variant = app.input(input_name)
    for name in names:
        default, own = space[name].default, variant.values.get(name)
        if default is not None and own is not None and own != str(default):
            raise UsageError(
                f"space {space.name}: the default of {name} is {default}, but the input of "
                f"{app.name!r} has {own}; expected the same, because a setting leaves out what "
                "equals the default.  Give the input that value, or the parameter no default",
                code="space.other_default",
            )
    if not app.rules:
        return space
    constraints = []
    for table in app.rules:
        source = parse_expression(table.rule)
        constraints.append(Constraint(spelled_out(source, space.derived), table.reason, source))
    facts = {**variant.facts, **space.facts}
    return replace(space, constraints=(*space.constraints, *constraints), facts=facts)
