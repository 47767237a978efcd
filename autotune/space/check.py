"""Check a space file against the installed MPI library, before a search uses it.

:func:`check_file` checks the whole file: names, levels, implied values and expressions.

:func:`refused_value` checks one value, because the library does not: Open MPI reads a word as 0 if
it expects a number, and an unknown enumerated value as its default.

:func:`today` names the replacement of an Open MPI parameter that the library's version lacks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from autotune.config.find import ConfigFile, find_config
from autotune.errors import UsageError
from autotune.space.definition import (
    ENUM,
    KIND,
    Definition,
    Keys,
    expressions,
    read_with_mistakes,
)
from autotune.space.expression import Compare, Constant, Expr, Name
from autotune.space.expression import parse_expression as parse_expression
from autotune.space.layout import same_layout
from autotune.space.new_names import OBSOLETE_NAMES, new_names
from autotune.space.parameter import default_kind, divisor_expression, parse_levels
from autotune.space.resolve import applies, keys_for, resolve, title
from autotune.space.setting import Value, normalise_value
from autotune.space.space import Space
from runner.mpi.library import Library, ParamInfo, enumerated_values


@dataclass(frozen=True)
class SpaceFinding:
    """One remark; ``where`` is the key in the file. An ``error`` must be corrected."""

    kind: Literal["error", "note"]
    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.message}" if self.where else self.message


@dataclass(frozen=True)
class SpaceReport:
    """The result of :func:`check_file`; ``space`` is the resolved space if there is no error."""

    path: str
    library: str
    findings: tuple[SpaceFinding, ...]
    space: Space | None

    @property
    def errors(self) -> tuple[SpaceFinding, ...]:
        """The remarks that must be corrected."""
        return tuple(finding for finding in self.findings if finding.kind == "error")

    @property
    def ok(self) -> bool:
        """True if there is no error."""
        return not self.errors


def check_file(name: str, library: Library) -> SpaceReport:
    """Read one space (a name or the path of a ``.toml`` file) and compare it with the library.

    Raises :class:`UsageError` only if the file does not exist, or if the library lists no
    parameters.
    """
    file = find_config(KIND, name)
    if not library.params:
        raise UsageError(
            f"{title(library)} does not list its parameters, so the space cannot be checked",
            code="mpi.no_parameter_list",
        )
    definition, mistakes = read_with_mistakes(file)
    findings = [SpaceFinding("error", "space.invalid", "", line) for line in mistakes]
    if definition is None:
        return SpaceReport(file.path, title(library), tuple(findings), None)
    findings += [*_parameters(definition, library), *_words(definition, library)]
    space = None
    if not any(finding.kind == "error" for finding in findings):
        space, more = _try_resolve(definition, file, library)
        findings += more
    if space is not None:
        findings += _layouts(space)
    return SpaceReport(file.path, title(library), tuple(findings), space)


def _try_resolve(
    definition: Definition, file: ConfigFile, library: Library
) -> tuple[Space | None, list[SpaceFinding]]:
    try:
        return resolve(definition, file.name, file.path, library), []
    except UsageError as error:
        return None, [SpaceFinding("error", error.code, "", str(error))]


def _layouts(space: Space) -> Iterator[SpaceFinding]:
    if space.layout.words and (pair := same_layout(space)) is not None:
        yield SpaceFinding(
            "error",
            "layout.same",
            "layout.words",
            f"{pair[0].key} and {pair[1].key} have the same words, so the setting does not follow "
            "from them: add a word, or name the parameter in [layout.own]",
        )


def _parameters(definition: Definition, library: Library) -> Iterator[SpaceFinding]:
    for canonical, table in definition.parameters.items():
        where = f"parameters.{canonical}"
        keys = keys_for(table, library)
        if keys.absent is not None:
            yield SpaceFinding("note", "parameter.absent", where, f"left out here: {keys.absent}")
            continue
        info = None
        name = keys.name or canonical
        if (keys.target or default_kind(name)) == "mca":
            info = library.params.get(name)
            yield from _name(name, info, keys, where, library)
            if info is None:
                continue
        yield from _values(keys, info, where)
        yield from _check_implied(keys, where, library)


def _name(
    name: str, info: ParamInfo | None, keys: Keys, where: str, library: Library
) -> Iterator[SpaceFinding]:
    if info is None:
        message = f"{title(library)} has no parameter {name}: {today(name, library)}"
        yield SpaceFinding(
            "note" if keys.optional else "error", "parameter.unknown", where, message
        )
    elif info.synonym_of in library.params:
        yield SpaceFinding(
            "note",
            "parameter.synonym",
            where,
            f"{name} is called {info.synonym_of} here; that name is used",
        )


def _values(keys: Keys, info: ParamInfo | None, where: str) -> Iterator[SpaceFinding]:
    if keys.levels is None:
        yield SpaceFinding("error", "levels.none", f"{where}.levels", "no levels for this library")
    if keys.levels == ENUM and (info is None or not info.enum):
        yield SpaceFinding(
            "error",
            "levels.no_enum",
            f"{where}.levels",
            '"enum" needs a parameter with enumerated values; the library lists none',
        )
    entries: list[tuple[str, Value]] = []
    if keys.levels is not None and keys.levels != ENUM and divisor_expression(keys.levels) is None:
        entries += [("levels", level) for level in parse_levels(keys.levels)]
    entries += [("exclude", value) for value in keys.exclude]
    entries += [("default", normalise_value(keys.default))] if keys.default is not None else []
    for key, value in entries:
        if info is not None and (problem := refused_value(value, info)):
            yield SpaceFinding(
                "error", "parameter.value", f"{where}.{key}", f"{problem} (type {info.type})"
            )


def _check_implied(keys: Keys, where: str, library: Library) -> Iterator[SpaceFinding]:
    for name, value in keys.implied_values:
        if default_kind(name) != "mca":
            continue
        info = library.params.get(name)
        if info is None:
            message = f"{title(library)} has no parameter {name}: {today(name, library)}"
            yield SpaceFinding("error", "parameter.unknown", f"{where}.implies", message)
        elif problem := refused_value(value, info):
            yield SpaceFinding("error", "parameter.value", f"{where}.implies.{name}", problem)


def _words(definition: Definition, library: Library) -> Iterator[SpaceFinding]:
    """Find words in expressions that can never equal the value they are compared with."""
    legal = {
        name: words
        for name, table in definition.parameters.items()
        if (words := _legal_words(keys_for(table, library), name, library)) is not None
    }
    for where, text in expressions(definition):
        if not _is_for(definition, where, library):
            continue
        for name, word in _word_comparisons(parse_expression(text)):
            if name in legal and word not in legal[name]:
                choices = ", ".join(sorted(legal[name])) or "numbers"
                yield SpaceFinding(
                    "error",
                    "expression.word",
                    where,
                    f"{word!r} is not a value of {name}; expected {choices}",
                )


def _is_for(definition: Definition, where: str, library: Library) -> bool:
    """True if a constraint applies to this library, or a parameter exists there; conditions of
    those count in every form."""
    kind, _, rest = where.partition(".")
    if kind == "parameters":
        canonical_names = (name for name in definition.parameters if rest.startswith(f"{name}."))
        table = definition.parameters.get(next(canonical_names, ""))
        return table is None or keys_for(table, library).absent is None
    if kind != "constraints":
        return True
    return applies(definition.constraints[int(rest.split(".")[0])], library)


def _legal_words(keys: Keys, name: str, library: Library) -> set[str] | None:
    """The allowed words of a parameter's value, or None if any value is allowed."""
    native = keys.name or name
    if (keys.target or default_kind(native)) != "mca" or keys.absent is not None:
        return None
    info = library.params.get(native)
    if info is None or (info.type == "string" and not info.by_name):
        return None
    return set(info.enum.values())


def _word_comparisons(expr: Expr) -> Iterator[tuple[str, str]]:
    """Every (name, word) on the two sides of a comparison."""
    if isinstance(expr, Compare):
        for one, other in ((expr.left, expr.right), (expr.right, expr.left)):
            word = other.content if isinstance(other, Constant) else None
            if isinstance(one, Name) and isinstance(word, str):
                yield one.name, word
    for child in expr.children():
        yield from _word_comparisons(child)


def is_flags(info: ParamInfo) -> bool:
    """True if the enumerated values are bits that are added."""
    return bool(info.enum) and (info.name.endswith("_flags") or "," in info.default)


def refused_value(value: Value, info: ParamInfo) -> str | None:
    """Why the library refuses ``value`` for the parameter, or None."""
    if info.by_name:
        names = info.enum.values()
        return None if value in names else f"{value!r} is not among {', '.join(names)}"
    if isinstance(value, str):
        return _illegal_word(value, info)
    if info.type == "string":
        return None
    if info.type == "bool":
        return None if value in (0, 1) else f"{value} is not a boolean"
    if info.enum and not is_flags(info):
        legal = enumerated_values(info.enum)
        return None if value in info.enum else f"{value} is not among {legal}"
    if isinstance(value, float) and info.type != "double":
        return f"{value} is not a whole number"
    if value < 0 and info.type in ("unsigned", "size_t"):
        return f"{value} is negative"
    return None


def _illegal_word(word: str, info: ParamInfo) -> str | None:
    if info.type == "string" or word in info.enum.values():
        return None
    if is_flags(info) and set(word.split(",")) <= set(info.enum.values()):
        return None
    if info.enum:
        return f"{word!r} is not among {enumerated_values(info.enum)}"
    return f"{word!r} is not a number; the library would read it as 0"


def today(name: str, library: Library) -> str:
    """The replacement of ``name``, as the end of a sentence."""
    spellings = [name]
    for spelling in new_names(name):
        spellings.append(spelling)
        if spelling in library.params:
            return f"it is called {spelling} here"
    for pattern, advice in OBSOLETE_NAMES:
        if re.fullmatch(pattern, name):
            return advice
    near = _nearest(spellings, library)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "no parameter here has a similar name"


def _nearest(spellings: list[str], library: Library) -> list[str]:
    """Up to two names of this library that are similar to one of the spellings, the best first."""
    current = [n for n, info in library.params.items() if info.synonym_of not in library.params]
    scores: dict[str, float] = {}
    for spelling in spellings:
        for name in difflib.get_close_matches(spelling, current, n=2, cutoff=0.75):
            score = difflib.SequenceMatcher(None, name, spelling).ratio()
            scores[name] = max(score, scores.get(name, 0.0))
    return sorted(scores, key=lambda name: (-scores[name], name))[:2]
