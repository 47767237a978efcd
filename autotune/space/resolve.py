"""A definition as it applies to one library: its names, its enumerated values, its defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from autotune.errors import UsageError
from autotune.space.definition import ConstraintTable, Definition, Keys, ParameterTable
from autotune.space.derived import derive, spelled_out
from autotune.space.expression import parse as parse_expression
from autotune.space.grid import default_of, levels_of
from autotune.space.mentions import is_workers
from autotune.space.nodes import Compare, Constant, Expr, Name, renamed
from autotune.space.parameter import Parameter, target_of
from autotune.space.setting import Setting, Value, normalise_value
from autotune.space.space import Constraint, Space
from autotune.space.version import matches
from autotune.space.words import Argument
from runner.mpi.families import family
from runner.mpi.library import Library, ParamInfo

_LISTED = "mca"
"""The only target whose names a library's own listing can confirm."""


@dataclass
class _Found:
    """One parameter of the definition: what it is here, or why it is not."""

    keys: Keys
    name: str
    info: ParamInfo | None = None
    absent: str | None = None
    levels: tuple[Value, ...] = field(default_factory=tuple)


def resolve(
    definition: Definition,
    name: str,
    origin: str,
    library: Library | None = None,
    facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space of a definition under a library (None: names as they stand in the file).

    Parameters that the library does not have, or whose condition cannot hold under the facts, are
    in ``Space.absent`` with the reason.  ``origin`` is the file's name for messages.
    Raises :class:`UsageError`.
    """
    facts = dict(facts or {})
    if library and definition.library and not matches(definition.library, library):
        raise UsageError(
            f"{origin}: space {name} is for {definition.library}, but the MPI library here "
            f"is {title(library)}; choose another space (--space) or another MPI (--mpi)"
        )
    found = {
        canonical: _find(canonical, table, f"{origin}: parameters.{canonical}", library, facts)
        for canonical, table in definition.parameters.items()
    }
    return _assemble(definition, name, library, found, facts)


def _assemble(
    definition: Definition,
    name: str,
    library: Library | None,
    found: dict[str, _Found],
    facts: dict[str, Value],
) -> Space:
    names = {canonical: item.name for canonical, item in found.items()}
    enums = {item.name: item.info.enum for item in found.values() if item.info and item.info.enum}
    present = {c: item for c, item in found.items() if item.absent is None}
    absent = {c: item.absent for c, item in found.items() if item.absent is not None}
    derived = derive(
        {n: renamed(parse_expression(t), names) for n, t in definition.derived.items()}
    )

    def read(text: str) -> Expr:
        return spelled_out(_translated(text, names, enums), derived)

    parameters = [_parameter(item, names, read, facts) for item in present.values()]
    constraints = [
        Constraint(read(table.rule), table.reason, _translated(table.rule, names, enums))
        for table in definition.constraints
        if applies(table, library)
    ]
    arguments = [
        Argument(table.words).renamed(names, read(table.when) if table.when else None)
        for table in definition.arguments
    ]
    aliases = {
        other: item.name
        for canonical, item in present.items()
        for other in _names(canonical, definition.parameters[canonical]) - {item.name}
    }
    space = Space(
        name,
        tuple(parameters),
        tuple(constraints),
        absent,
        facts,
        aliases,
        derived,
        tuple(arguments),
        frozenset({definition.requires} if definition.requires else ()),
    )
    space = _without_hopeless(space, names)
    return replace(space, starts=_starts(definition, space, names))


def _starts(definition: Definition, space: Space, names: Mapping[str, str]) -> tuple[Setting, ...]:
    """The settings to try first that this library and these facts allow."""
    found = []
    for table in definition.start:
        setting = Setting({names[n]: v for n, v in Setting.parse(table.setting).items()})
        if space.is_valid(setting) and (canonical := space.canonical(setting)) not in found:
            found.append(canonical)
    return tuple(found)


def _names(canonical: str, table: ParameterTable) -> set[str]:
    """Everything a parameter is called in one library or another."""
    given = {table.name, *(keys.name for keys in table.on.values())}
    return {canonical, *(name for name in given if name)}


def applies(table: ConstraintTable, library: Library | None) -> bool:
    """Whether a constraint is meant for this library."""
    return table.on is None or (library is not None and matches(table.on, library))


def _find(
    canonical: str,
    table: ParameterTable,
    where: str,
    library: Library | None,
    facts: Mapping[str, Value],
) -> _Found:
    keys = merged(table, library)
    item = _Found(keys, keys.name or canonical, absent=keys.absent)
    target = keys.target or target_of(item.name)
    if item.absent is None and library is not None and library.params and target == _LISTED:
        item.info = library.params.get(item.name)
        if item.info is None:
            item.absent = f"{title(library)} has no parameter {item.name}"
        elif item.info.synonym_of in library.params:
            item.info = library.params[item.info.synonym_of]
            item.name = item.info.name
    if item.absent is None:
        item.levels = levels_of(
            item.keys, item.info, facts, where, title(library) if library else ""
        )
    return item


def merged(table: ParameterTable, library: Library | None) -> Keys:
    """The table with what it says for this library laid over it, in the order of the file."""
    values = {key: getattr(table, key) for key in Keys.model_fields}
    for spec, override in table.on.items():
        if library is not None and matches(spec, library):
            values |= {key: getattr(override, key) for key in override.model_fields_set}
    return Keys.model_construct(**values)


def _parameter(
    item: _Found, names: Mapping[str, str], read: Callable[[str], Expr], facts: Mapping[str, Value]
) -> Parameter:
    keys, info = item.keys, item.info
    return Parameter(
        name=item.name,
        levels=item.levels,
        target=keys.target or target_of(item.name),
        default=1 if is_workers(item.name, keys) else default_of(keys, info, facts),
        unset=keys.unset,
        when=read(keys.when) if keys.when else None,
        implies={names.get(n, n): normalise_value(v) for n, v in keys.implies.items()},
        help=keys.help or (info.help if info else ""),
        option=Argument(keys.option).renamed(names).template if keys.option else None,
        enum=dict(info.enum) if info else {},
    )


def _translated(
    text: str, names: Mapping[str, str], enums: Mapping[str, Mapping[int, str]]
) -> Expr:
    """Parse, take the library's names, and turn enumerated names into its numbers."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, Compare):
            return node
        left, right = node.left, node.right
        return Compare(node.sign, _as_number(left, right, enums), _as_number(right, left, enums))

    return renamed(parse_expression(text), names).map(change)


def _as_number(node: Expr, other: Expr, enums: Mapping[str, Mapping[int, str]]) -> Expr:
    if isinstance(node, Constant) and isinstance(other, Name):
        for number, name in enums.get(other.name, {}).items():
            if name == node.content:
                return Constant(number)
    return node


def _without_hopeless(space: Space, names: Mapping[str, str]) -> Space:
    """Move parameters to ``absent`` whose condition no setting can make true, given the facts."""
    hopeless = {}
    for parameter in space:
        when = parameter.when
        if when is None or any(name in space for name in when.names):
            continue
        if not space.active(parameter.name, {}):
            hopeless[parameter.name] = f"its condition {when} does not hold here"
    if not hopeless:
        return space
    canonical = {native: name for name, native in names.items()}
    reasons = {canonical.get(name, name): reason for name, reason in hopeless.items()}
    kept = tuple(parameter for parameter in space if parameter.name not in hopeless)
    absent = {**space.absent, **reasons}
    return _without_hopeless(replace(space, parameters=kept, absent=absent), names)


def title(library: Library) -> str:
    """Name and version for messages."""
    return f"{family(library.family).title} {library.version}".strip()
